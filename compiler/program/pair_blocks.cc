#include "compiler/program/pair_blocks.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plancast {
namespace {

// Where the turns of a block end: behind the last task of each.
std::vector<int32_t> TurnsOf(const Block& block) {
  std::vector<int32_t> ends;
  int32_t begin = 0;
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kKernel) continue;
    const auto waits = [&](int32_t dep) {
      return dep >= begin && block.kind[dep] == TaskKind::kComm &&
             block.purpose[dep] == Purpose::kEp;
    };
    if (std::any_of(block.deps.begin() + block.dep_begin[t],
                    block.deps.begin() + block.dep_begin[t + 1], waits)) {
      ends.push_back(t);
      begin = t;
    }
  }
  ends.push_back(block.size());
  return ends;
}

// The out-ports that a pair has of its forward block, as many as come in: layers of an instance
// hand on by number.
size_t ForwardPorts(const BlockTemplate& forward) {
  return forward.block.out_ports.size() - (forward.tells_begin ? 1 : 0);
}

// One of the two, as it is written task by task.
class Half {
 public:
  // Its in-ports and tensors come behind so many.
  Half(const BlockTemplate& in, int in_ports, BlockBuilder* out)
      : in_(in), in_ports_(in_ports), turns_(TurnsOf(in.block)), out_(*out) {
    for (const std::string& tensor : in.block.tensors) tensors_.push_back(out_.AddTensor(tensor));
  }

  bool done() const { return turn_ == turns_.size(); }

  void WriteTurn() {
    for (; task_ < turns_[turn_]; ++task_) WriteTask(task_);
    ++turn_;
  }

  void Finish(bool forward) {
    const Block& block = in_.block;
    for (const BlockTemplate::Gradient& g : in_.gradients) {
      out_.AddGradient(at_[g.task], g.elements, g.tensor, g.further);
    }
    for (const MemoryEvent& e : block.memory) {
      out_.AddMemory(at_[e.task], e.after, e.kind, tensors_[e.tensor], e.delta, e.early, e.pool);
    }
    for (const PortMemory& take : block.takes) {
      out_.Take(tensors_[take.tensor], take.bytes, forward);
    }
    for (const PortMemory& give : block.gives) {
      out_.Give(tensors_[give.tensor], give.bytes, forward);
    }
    const size_t ports = forward ? ForwardPorts(in_) : block.out_ports.size();
    for (size_t i = 0; i < ports; ++i) out_.AddOutPort(Now(block.out_ports[i]));
    out_.KeepOnHost(block.host_bytes);
    if (forward) {
      for (const int task : at_) out_.MarkPairForward(task);
    }
  }

 private:
  int Now(int32_t dep) const { return dep < 0 ? ~(~dep + in_ports_) : at_[dep]; }

  void WriteTask(int32_t t) {
    const Block& block = in_.block;
    std::vector<int> deps;
    for (int32_t d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
      deps.push_back(Now(block.deps[d]));
    }
    at_.push_back(
        block.kind[t] == TaskKind::kKernel
            ? out_.AddKernel(in_.kernels[block.spec[t]], block.purpose[t], block.label[t], deps)
            : out_.AddComm(in_.comms[block.spec[t]], block.stream[t], block.purpose[t],
                           block.label[t], deps));
    if ((block.flags[t] & Block::kHostSync) != 0) out_.MarkHostSync(at_.back());
  }

  const BlockTemplate& in_;
  const int in_ports_;
  const std::vector<int32_t> turns_;
  BlockBuilder& out_;
  std::vector<uint16_t> tensors_;
  size_t turn_ = 0;
  int32_t task_ = 0;
  std::vector<int> at_;  // per task that is written
};

}  // namespace

BlockTemplate PairBlocks(const BlockTemplate& forward, const BlockTemplate& backward) {
  PLANCAST_CHECK(forward.block.rendezvous_task < 0 && backward.block.rendezvous_task < 0);
  const int ports = forward.block.num_in_ports;
  BlockBuilder builder(absl::StrCat(forward.block.name, "&", backward.block.name),
                       ports + backward.block.num_in_ports);
  Half f(forward, 0, &builder), b(backward, ports, &builder);
  while (!f.done() || !b.done()) {
    if (!b.done()) b.WriteTurn();
    if (!f.done()) f.WriteTurn();
  }
  f.Finish(/*forward=*/true);
  b.Finish(/*forward=*/false);
  BlockTemplate pair = std::move(builder).Build();
  pair.block.layers = backward.block.layers;
  pair.block.forward_in_ports = ports;
  pair.block.forward_out_ports = static_cast<int32_t>(ForwardPorts(forward));
  // Gradients are the backward block's.
  pair.corrected_bytes = backward.corrected_bytes;
  pair.sum_read_bytes = backward.sum_read_bytes;
  pair.tells_begin = backward.tells_begin;
  return pair;
}

}  // namespace plancast
