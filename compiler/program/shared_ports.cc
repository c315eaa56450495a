#include "compiler/program/shared_ports.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plancast {
namespace {

using Ports = PortVariants::Ports;
using SharedBody = PortVariants::SharedBody;

constexpr size_t kMostPorts = 64;

// Takes one event out that allocates (or frees) all of the tensor.
void Drop(int tensor, int64_t delta, Block* block) {
  const auto event =
      std::find_if(block->memory.begin(), block->memory.end(), [&](const MemoryEvent& e) {
        return e.tensor == tensor && e.delta == delta && e.kind == MemoryKind::kActivations;
      });
  PLANCAST_CHECK(event != block->memory.end());
  block->memory.erase(event);
}

void Drop(int tensor, std::vector<PortMemory>* ports) {
  const auto port = std::find_if(ports->begin(), ports->end(),
                                 [&](const PortMemory& p) { return p.tensor == tensor; });
  PLANCAST_CHECK(port != ports->end());
  ports->erase(port);
}

CompiledBody Variant(const CompiledBody& body, Ports borrowed, Ports lent) {
  CompiledBody variant = body;
  variant.original = &body;
  Block& forward = variant.blocks.forward.block;
  for (size_t p = 0; p < body.blocks.in_ports.size(); ++p) {
    if ((borrowed >> p & 1) == 0) continue;
    const InPortMemory& port = body.blocks.in_ports[p];
    Drop(port.forward, &forward.takes);
    if (port.backward >= 0) {
      BodyBlocks& blocks = variant.blocks;
      Drop(port.backward, -port.bytes,
           &(port.until_weights ? blocks.weights : blocks.backward).block);
    } else {
      Drop(port.forward, -port.bytes, &forward);
    }
  }
  for (size_t p = 0; p < body.blocks.out_ports.size(); ++p) {
    if ((lent >> p & 1) == 0) continue;
    const OutPortMemory& port = body.blocks.out_ports[p];
    Drop(port.forward, port.bytes, &forward);
    Drop(port.forward, &forward.gives);
  }
  return variant;
}

// A run with what its first, its last and its other repeats share.
class RunWriter {
 public:
  RunWriter(PortVariants* variants, std::vector<SharedBody>* bodies, std::vector<StageRun>* runs)
      : variants_(*variants), bodies_(*bodies), runs_(*runs) {}

  void Write(const StageRun& run, Ports before, Ports between, Ports after) {
    if (run.count == 1) {
      Append(run, 0, 1, before, after);
      return;
    }
    const bool first = before != between, last = after != between;
    if (first) Append(run, 0, 1, before, between);
    const int64_t middle = run.count - (first ? 1 : 0) - (last ? 1 : 0);
    if (middle > 0) Append(run, first ? 1 : 0, middle, between, between);
    if (last) Append(run, run.count - 1, 1, between, after);
  }

 private:
  void Append(const StageRun& run, int64_t begin, int64_t count, Ports borrowed, Ports lent) {
    runs_.push_back({run.segment, Number(run.bound_body, borrowed, lent), run.layer_begin + begin,
                     count, run.joined});
  }

  int Number(int body, Ports borrowed, Ports lent) {
    if (borrowed == 0 && lent == 0) return body;
    const SharedBody variant = variants_.Of(bodies_[body], borrowed, lent);
    const auto known = std::find(bodies_.begin(), bodies_.end(), variant);
    if (known != bodies_.end()) return static_cast<int>(known - bodies_.begin());
    bodies_.push_back(variant);
    return static_cast<int>(bodies_.size()) - 1;
  }

  PortVariants& variants_;
  std::vector<SharedBody>& bodies_;
  std::vector<StageRun>& runs_;
};

bool Lends(const CompiledBody& body) {
  return std::any_of(body.blocks.out_ports.begin(), body.blocks.out_ports.end(),
                     [](const OutPortMemory& port) { return port.forward >= 0; });
}

}  // namespace

SharedBody PortVariants::Of(const SharedBody& body, Ports borrowed, Ports lent) {
  std::lock_guard<std::mutex> lock(mutex_);
  SharedBody& made = made_[{body.get(), borrowed, lent}];
  if (made == nullptr) made = std::make_shared<const CompiledBody>(Variant(*body, borrowed, lent));
  return made;
}

Ports SharedPorts(const CompiledBody& first, const CompiledBody& second) {
  const std::vector<OutPortMemory>& out = first.blocks.out_ports;
  const std::vector<InPortMemory>& in = second.blocks.in_ports;
  Ports shared = 0;
  for (size_t p = 0; p < std::min({out.size(), in.size(), kMostPorts}); ++p) {
    const bool both = out[p].forward >= 0 && in[p].forward >= 0 && out[p].bytes == in[p].bytes &&
                      // Who lends must not give up before who borrows does.
                      (out[p].until_weights || !in[p].until_weights);
    if (both) shared |= Ports{1} << p;
  }
  return shared;
}

void SharePorts(PortVariants* variants, std::vector<std::vector<StageRun>>* stages,
                std::vector<SharedBody>* bodies) {
  if (std::none_of(bodies->begin(), bodies->end(),
                   [](const SharedBody& body) { return Lends(*body); })) {
    return;
  }
  const std::vector<SharedBody> plain = *bodies;
  for (std::vector<StageRun>& runs : *stages) {
    std::vector<StageRun> written;
    RunWriter writer(variants, bodies, &written);
    const auto shared = [&](size_t first, size_t second) {
      return SharedPorts(*plain[runs[first].bound_body], *plain[runs[second].bound_body]);
    };
    for (size_t r = 0; r < runs.size(); ++r) {
      writer.Write(runs[r], r > 0 ? shared(r - 1, r) : 0, shared(r, r),
                   r + 1 < runs.size() ? shared(r, r + 1) : 0);
    }
    runs = std::move(written);
  }
}

}  // namespace plancast
