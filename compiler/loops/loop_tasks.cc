#include "compiler/loops/loop_tasks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/loops/beside.h"

namespace plancast {
namespace {

using Way = PartTransport::Way;
using Loop = BlockTemplate::Loop;

// What becomes of a task: itself, or tasks from `first` to `last`.
struct Cut {
  int loop = -1;  // it is of this loop over parts
  int first = 0, last = 0;
};

// The tasks with which a loop over parts is over: its last kernel, and what it sends.
struct Done {
  int made = BlockBuilder::kNone, sent = BlockBuilder::kNone;
};

class Cutter {
 public:
  explicit Cutter(BlockTemplate in)
      : in_(std::move(in)),
        block_(in_.block),
        cuts_(block_.size()),
        came_(in_.loops.size()),
        done_(in_.loops.size()) {
    for (size_t l = 0; l < in_.loops.size(); ++l) {
      const Loop& loop = in_.loops[l];
      for (const std::vector<int>* tasks : {&loop.gathers, &loop.scatters, &loop.op}) {
        for (const int t : *tasks) cuts_[t].loop = static_cast<int>(l);
      }
    }
  }

  BlockTemplate Run() {
    for (int t = 0; t < block_.size(); ++t) {
      cuts_[t].first = out_.size();
      if (cuts_[t].loop >= 0) {
        EmitOfLoop(t);
        // What is left of a task that another stands for begins and ends with that.
        if (out_.size() == cuts_[t].first) cuts_[t].first = LastOfLoop(t);
      } else if (block_.kind[t] == TaskKind::kComm) {
        AddComm(t, in_.comms[block_.spec[t]], Deps(t));
      } else {
        AddKernel(t, in_.kernels[block_.spec[t]], Deps(t));
      }
      cuts_[t].last = cuts_[t].loop >= 0 ? LastOfLoop(t) : out_.size() - 1;
      if ((block_.flags[t] & Block::kHostSync) != 0) out_.MarkHostSync(cuts_[t].last);
    }
    for (const std::string& tensor : block_.tensors) out_.AddTensor(tensor);
    for (const MemoryEvent& e : block_.memory) {
      out_.AddMemory(e.after ? cuts_[e.task].last : cuts_[e.task].first, e.after, e.kind, e.tensor,
                     e.delta, e.early, e.pool);
    }
    out_.ReadSums(in_.sum_read_bytes);
    for (const BlockTemplate::Gradient& g : in_.gradients) {
      out_.AddGradient(cuts_[g.task].first, g.elements, g.tensor, g.further);
    }
    for (const int task : in_.further) {
      for (int t = cuts_[task].first; t <= cuts_[task].last; ++t) out_.MarkFurther(t);
    }
    for (const PortMemory& take : block_.takes) out_.Take(take.tensor, take.bytes);
    for (const PortMemory& give : block_.gives) out_.Give(give.tensor, give.bytes);
    for (const int port : block_.out_ports) {
      out_.AddOutPort(port < 0 ? port : cuts_[port].last);
    }
    BlockTemplate cut = std::move(out_).Build();
    cut.outside = std::move(in_.outside);
    cut.corrected_bytes = in_.corrected_bytes;
    return cut;
  }

 private:
  // What an old task waits for, as new tasks.
  std::vector<int> Deps(int t) const { return DepsOfAll({t}, {}); }
  // What any of `tasks` waits for, but for themselves and `without`.
  std::vector<int> DepsOfAll(const std::vector<int>& tasks, const std::vector<int>& without) const {
    std::vector<int> deps;
    for (const int t : tasks) {
      for (int d = block_.dep_begin[t]; d < block_.dep_begin[t + 1]; ++d) {
        const int dep = block_.deps[d];
        if (Contains(without, dep) || Contains(tasks, dep)) continue;
        deps.push_back(dep < 0 ? dep : cuts_[dep].last);
      }
    }
    return deps;
  }

  // In the place of old task `t`.
  int AddComm(int t, const CommSpec& comm, const std::vector<int>& deps) {
    return out_.AddComm(comm, block_.stream[t], block_.purpose[t], block_.label[t], deps);
  }
  int AddKernel(int t, const KernelSpec& kernel, const std::vector<int>& deps) {
    return out_.AddKernel(kernel, block_.purpose[t], block_.label[t], deps);
  }
  // A pass over memory that a transport takes.
  int AddPass(int t, const char* label, DType dtype, double read, double write,
              const std::vector<int>& deps) {
    KernelSpec pass;
    pass.label = label;
    pass.dtype = dtype;
    pass.read_bytes = read;
    pass.write_bytes = write;
    return AddKernel(t, pass, deps);
  }

  static int64_t Share(int64_t total, int64_t i, int64_t of) {
    return total * (i + 1) / of - total * i / of;
  }

  // Whether the parts go from rank to rank over these axes.
  static bool Turns(const CommLoop& loop, const CommSpec& comm) {
    return loop.turns && std::all_of(comm.axes.begin(), comm.axes.end(),
                                     [&](int axis) { return Contains(loop.turns_over, axis); });
  }
  // Whether nothing comes for a step of the loop: where parts turn, the device has its own in the
  // first step; in a loop that is skewed in another one, which stands last here.
  static bool AtHand(const CommLoop& loop, const CommSpec& comm, int64_t step) {
    return Turns(loop, comm) && step == (loop.skewed ? loop.pieces - 1 : 0);
  }

  // The parts of a loop's tensors that go together in one step: by the axes that they go over, one
  // message each. `by`: how the software moves them.
  std::vector<CommSpec> PartsOf(const std::vector<int>& tasks, const Loop& of,
                                const PartTransport& by, int64_t step) const {
    const CommLoop& loop = of.how;
    const double wider = tasks == of.scatters ? of.wider_sums : of.wider;
    std::vector<CommSpec> parts;
    for (const int t : tasks) {
      CommSpec comm = in_.comms[block_.spec[t]];
      comm.bytes = Share(comm.bytes, step, loop.pieces);
      if (wider != 1) comm.bytes = std::llround(static_cast<double>(comm.bytes) * wider);
      if (!loop.in_parts && by.way != Way::kCollective) {
        comm.kind = Turns(loop, comm) ? CollectiveKind::kPermute : CollectiveKind::kBroadcast;
        if (by.copy_engines) comm.policy = "copy";
      }
      comm.spared = by.spared;
      const auto same = std::find_if(parts.begin(), parts.end(), [&](const CommSpec& known) {
        return known.axes == comm.axes && known.kind == comm.kind;
      });
      if (same == parts.end()) {
        parts.push_back(comm);
      } else {
        same->bytes += comm.bytes;
      }
    }
    return parts;
  }
  static double BytesOf(const std::vector<CommSpec>& parts) {
    double bytes = 0;
    for (const CommSpec& part : parts) bytes += static_cast<double>(part.bytes);
    return bytes;
  }

  // Parts leave as soon as the ones before them have come, or, from who has them, one by one.
  void EmitGathers(const Loop& loop, std::vector<int>* came) {
    std::vector<int> deps = DepsOfAll(loop.gathers, {});
    const int t = loop.gathers[0];
    came->assign(loop.how.pieces, BlockBuilder::kNone);
    if (loop.how.comes.staged && !loop.op.empty()) {
      const double own = BytesOf(PartsOf(loop.gathers, loop, loop.how.comes, 0));
      const DType dtype = in_.kernels[block_.spec[loop.op[0]]].dtype;
      (*came)[0] = AddPass(loop.op[0], "stage_part", dtype, own, own, deps);
      deps = {(*came)[0]};
    }
    for (int i = 0; i < loop.steps.packs; ++i) deps = {Pack(loop, loop.gathers, 0, deps)};
    if (loop.steps.gathers) {
      for (CommSpec comm : PartsOf(loop.gathers, loop, loop.how.comes, 0)) {
        comm.kind = CollectiveKind::kAllGather;
        comm.bytes *= loop.how.pieces;
        came->assign(loop.how.pieces, AddComm(t, comm, deps));
      }
      (*came)[0] = BlockBuilder::kNone;
      return;
    }
    for (int64_t i = 0; i < loop.how.pieces; ++i) {
      const int before = i > 0 ? (*came)[i - 1] : BlockBuilder::kNone;
      for (const CommSpec& comm : PartsOf(loop.gathers, loop, loop.how.comes, i)) {
        if (AtHand(loop.how, comm, i)) continue;
        const bool handed_on = Turns(loop.how, comm) && loop.how.comes.way != Way::kPeers;
        const bool waits = handed_on && before != BlockBuilder::kNone;
        (*came)[i] = AddComm(t, comm, waits ? std::vector<int>{before} : deps);
      }
    }
  }

  // A copy of what is about to be sent.
  int Pack(const Loop& loop, const std::vector<int>& tasks, int64_t step,
           const std::vector<int>& deps) {
    const double bytes = BytesOf(PartsOf(tasks, loop, {}, step));
    const int op = loop.op[0];
    return AddPass(op, "part_copy", in_.kernels[block_.spec[op]].dtype, bytes, bytes, deps);
  }

  // Part `step` of what the loop makes, to where it goes.
  int Send(const Loop& loop, int64_t step, int made) {
    int last = BlockBuilder::kNone;
    for (const CommSpec& comm : PartsOf(loop.scatters, loop, loop.how.leaves, step)) {
      last = AddComm(loop.scatters[0], comm, {made});
    }
    return last;
  }

  // Sends what step `i` has made and what the sums that come in take of it; `sums`: those that are
  // under way.
  void Scatter(const Loop& loop, int64_t i, std::vector<int>* sums, Done* done) {
    const int t = loop.op[0];
    const int64_t pieces = loop.how.pieces;
    const DType dtype = loop.kernels[i].back().dtype;
    const auto part = [&] { return BytesOf(PartsOf(loop.scatters, loop, {}, i)); };
    const Way way = loop.how.leaves.way;
    if (loop.how.in_parts || way == Way::kCollective) {
      done->sent = Send(loop, i, done->made);
    } else if (way == Way::kPeers) {  // its own part it makes last
      if (i + 1 < pieces) {
        sums->push_back(Send(loop, i, done->made));
        return;
      }
      sums->push_back(done->made);
      // Slower than memory lets it run: as if it moved more.
      const double mine = part() / loop.how.leaves.sum_rate;
      done->sent = AddPass(t, "part_sum", dtype, static_cast<double>(pieces) * mine, mine, *sums);
    } else {
      // The sums of parts travel the other way round to who holds them.
      if (i > 0 || loop.wider_sums > loop.wider) {
        const double made = part() * loop.wider / loop.wider_sums;
        done->made = AddPass(t, "part_add", dtype, i > 0 ? made + part() : made, part(),
                             {done->made, done->sent});
      }
      for (int pack = 0; pack < loop.steps.sum_packs; ++pack) {
        done->made = Pack(loop, loop.scatters, i, {done->made});
      }
      const bool sends = i + 1 < pieces || loop.steps.returns_sums;
      done->sent = sends ? Send(loop, i, done->made) : done->made;
    }
  }

  void EmitLoop(const Loop& loop, const std::vector<int>& came, Done* done) {
    const int t = loop.op[0];
    std::vector<int> deps = DepsOfAll(loop.op, loop.gathers);
    const std::vector<int> before = DepsOfAll(loop.gathers, {});
    deps.insert(deps.end(), before.begin(), before.end());
    std::vector<int> sums;
    for (int64_t i = 0; i < loop.how.pieces; ++i) {
      std::vector<int> after = deps;
      if (!came.empty()) after.push_back(came[i]);
      if (loop.steps.waits) {
        if (!came.empty()) after.push_back(came[std::min(i + 1, loop.how.pieces - 1)]);
        after.push_back(done->sent);
      }
      done->made = BlockBuilder::kNone;
      for (const KernelSpec& kernel : loop.kernels[i]) {
        done->made = AddKernel(t, kernel, after);
        after = {done->made};
      }
      if (!loop.scatters.empty()) Scatter(loop, i, &sums, done);
    }
    if (!loop.copies_whole) return;
    double whole = 0;
    for (const int gather : loop.gathers) {
      whole += static_cast<double>(in_.comms[block_.spec[gather]].bytes);
    }
    AddPass(t, "copy_out", loop.kernels[0].back().dtype, whole, whole, {done->made});
  }

  // A task of a loop: the last gather stands for all, as does the first task of the op.
  void EmitOfLoop(int t) {
    const Loop& loop = in_.loops[cuts_[t].loop];
    if (!loop.gathers.empty() && t == loop.gathers.back()) {
      EmitGathers(loop, &came_[cuts_[t].loop]);
    } else if (!loop.op.empty() && t == loop.op[0]) {
      EmitLoop(loop, came_[cuts_[t].loop], &done_[cuts_[t].loop]);
    }
  }

  // What waits for a task of a loop waits for this.
  int LastOfLoop(int t) const {
    const Loop& loop = in_.loops[cuts_[t].loop];
    const Done& done = done_[cuts_[t].loop];
    if (Contains(loop.scatters, t) && done.sent != BlockBuilder::kNone) return done.sent;
    if (Contains(loop.op, t) && done.made != BlockBuilder::kNone) return done.made;
    return std::max(out_.size() - 1, 0);
  }

  BlockTemplate in_;
  const Block& block_;
  std::vector<Cut> cuts_;               // per task of the old block
  std::vector<std::vector<int>> came_;  // per loop, by step: the task that brings the part
  std::vector<Done> done_;              // per loop
  BlockBuilder out_{in_.block.name, in_.block.num_in_ports};
};

}  // namespace

BlockTemplate RunLoops(BlockTemplate block) {
  if (block.loops.empty()) return block;
  return Cutter(std::move(block)).Run();
}

}  // namespace plancast
