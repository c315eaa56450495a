#include "compiler/loops/loop_tasks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plancast {
namespace {

// What becomes of a task: itself, or pieces.
struct Cut {
  bool cut = false;
  int partner = -1;  // of a collective: its product; of a product: the gather before it
  int pieces = 0;
  int loop = -1;  // it is of this loop over parts
  int first = 0, last = 0;
};

// The tasks with which a loop over parts is over: its last kernel, and what it sends.
struct Done {
  int made = BlockBuilder::kNone, sent = BlockBuilder::kNone;
};

class Cutter {
 public:
  Cutter(BlockTemplate in, const DeviceMesh& mesh)
      : in_(std::move(in)),
        block_(in_.block),
        mesh_(mesh),
        cuts_(block_.size()),
        came_(in_.loops.size()),
        done_(in_.loops.size()) {
    for (size_t l = 0; l < in_.loops.size(); ++l) {
      const BlockTemplate::Loop& loop = in_.loops[l];
      for (const std::vector<int>* tasks : {&loop.gathers, &loop.scatters, &loop.op}) {
        for (const int t : *tasks) cuts_[t].loop = static_cast<int>(l);
      }
    }
  }

  // Finds products beside gathers and scatters of tensor parallelism.
  void PairProducts(bool gathers) {
    gathers_ = gathers;
    for (int t = 0; t < block_.size(); ++t) {
      if (!IsCollective(t) || cuts_[t].loop >= 0) continue;
      const CollectiveKind kind = in_.comms[block_.spec[t]].kind;
      if (kind == CollectiveKind::kAllGather && gathers_) PairGather(t);
      if (kind == CollectiveKind::kReduceScatter) PairScatter(t);
    }
  }

  BlockTemplate Run() {
    const bool any =
        std::any_of(cuts_.begin(), cuts_.end(), [](const Cut& c) { return c.cut || c.loop >= 0; });
    return any ? Emit() : std::move(in_);
  }

 private:
  bool IsCollective(int t) const {
    return block_.kind[t] == TaskKind::kComm && block_.stream[t] == StreamKind::kModelComm &&
           block_.purpose[t] == Purpose::kTp;
  }
  // One for each rank of a collective.
  int Pieces(int t) const { return static_cast<int>(mesh_.SizeOf(in_.comms[block_.spec[t]].axes)); }
  // That can be cut into so many.
  bool IsProduct(int t, int pieces) const {
    if (t < 0 || block_.kind[t] != TaskKind::kKernel) return false;
    const KernelSpec& kernel = in_.kernels[block_.spec[t]];
    return kernel.family == KernelFamily::kGemm && kernel.batch == 1 && kernel.m >= pieces &&
           block_.purpose[t] != Purpose::kRecompute && cuts_[t].loop < 0;
  }
  bool DependsOn(int t, int on) const {
    const auto begin = block_.deps.begin() + block_.dep_begin[t];
    return std::count(begin, block_.deps.begin() + block_.dep_begin[t + 1], on) > 0;
  }

  void PairGather(int gather) {
    const int pieces = Pieces(gather);
    if (pieces < 2) return;
    for (int t = gather + 1; t < block_.size(); ++t) {
      if (!DependsOn(t, gather)) continue;
      if (!IsProduct(t, pieces) || in_.kernels[block_.spec[t]].pass == GemmPass::kWgrad) return;
      if (cuts_[t].partner >= 0) return;
      cuts_[gather] = {true, t, pieces};
      cuts_[t].cut = true;
      cuts_[t].pieces = pieces;
      cuts_[t].partner = gather;
      return;
    }
  }

  void PairScatter(int scatter) {
    if (block_.dep_begin[scatter + 1] - block_.dep_begin[scatter] != 1) return;
    const int product = block_.deps[block_.dep_begin[scatter]];
    if (product < 0) return;
    // A product that goes on with the parts of a gather sends as many.
    const int pieces = cuts_[product].cut ? cuts_[product].pieces : Pieces(scatter);
    if (pieces < 2 || !IsProduct(product, pieces) ||
        in_.kernels[block_.spec[product]].pass != GemmPass::kForward)
      return;
    cuts_[scatter] = {true, product, pieces};
    cuts_[product].cut = true;
    cuts_[product].pieces = pieces;
  }

  // Dependencies of old task `t` but `without`, as new tasks.
  std::vector<int> Deps(int t, int without) const {
    std::vector<int> deps;
    for (int d = block_.dep_begin[t]; d < block_.dep_begin[t + 1]; ++d) {
      const int dep = block_.deps[d];
      if (dep != without) deps.push_back(dep < 0 ? dep : cuts_[dep].last);
    }
    return deps;
  }

  static int64_t Share(int64_t total, int i, int of) {
    return total * (i + 1) / of - total * i / of;
  }

  int AddComm(int t, int64_t bytes, const std::vector<int>& deps) {
    CommSpec comm = in_.comms[block_.spec[t]];
    comm.bytes = bytes;
    return out_.AddComm(comm, block_.stream[t], block_.purpose[t], block_.label[t], deps);
  }

  void EmitCollective(int t) {
    const CommSpec& whole = in_.comms[block_.spec[t]];
    const bool gather = whole.kind == CollectiveKind::kAllGather;
    const int pieces = cuts_[t].pieces;
    const int parts = gather ? std::max(pieces - 1, 1) : pieces;  // own rows are there
    for (int i = 0; i < parts; ++i) {
      std::vector<int> deps = Deps(t, gather ? BlockBuilder::kNone : cuts_[t].partner);
      if (!gather) deps.push_back(cuts_[cuts_[t].partner].first + i);
      AddComm(t, Share(whole.bytes, i, parts), deps);
    }
  }

  void EmitProduct(int t) {
    const KernelSpec& whole = in_.kernels[block_.spec[t]];
    const int gather = cuts_[t].partner;  // or -1
    const int pieces = cuts_[t].pieces;
    for (int i = 0; i < pieces; ++i) {
      KernelSpec kernel = whole;
      kernel.m = Share(whole.m, i, pieces);
      const double share = static_cast<double>(kernel.m) / static_cast<double>(whole.m);
      kernel.flops *= share;
      kernel.read_bytes *= share;
      kernel.write_bytes *= share;
      std::vector<int> deps = Deps(t, gather < 0 ? BlockBuilder::kNone : gather);
      if (gather >= 0 && i == 0) {
        const std::vector<int> before = Deps(gather, BlockBuilder::kNone);
        deps.insert(deps.end(), before.begin(), before.end());
      } else if (gather >= 0) {
        deps.push_back(std::min(cuts_[gather].first + i - 1, cuts_[gather].last));
      }
      out_.AddKernel(kernel, block_.purpose[t], block_.label[t], deps);
    }
  }

  // What waits for any of `tasks` waits for its own now.
  std::vector<int> DepsOfAll(const std::vector<int>& tasks, const std::vector<int>& without) const {
    std::vector<int> deps;
    for (const int t : tasks) {
      for (int d = block_.dep_begin[t]; d < block_.dep_begin[t + 1]; ++d) {
        const int dep = block_.deps[d];
        const bool own = std::count(without.begin(), without.end(), dep) > 0 ||
                         std::count(tasks.begin(), tasks.end(), dep) > 0;
        if (!own) deps.push_back(dep < 0 ? dep : cuts_[dep].last);
      }
    }
    return deps;
  }

  // Whether the parts go from neighbour to neighbour.
  static bool Turns(const BlockTemplate::Loop& loop, const CommSpec& comm) {
    return loop.turns && std::all_of(comm.axes.begin(), comm.axes.end(), [&](int axis) {
             return std::count(loop.turns_over.begin(), loop.turns_over.end(), axis) > 0;
           });
  }
  // Whether nothing comes for a step of the loop: where parts turn, the device has its own in the
  // first step; in a loop that is skewed in another one, which stands last here.
  static bool AtHand(const BlockTemplate::Loop& loop, const CommSpec& comm, int64_t step) {
    return Turns(loop, comm) && step == (loop.skewed ? loop.pieces - 1 : 0);
  }

  // The parts of a loop's tensors that go together in one step: by the axes that they go over, one
  // message each.
  std::vector<CommSpec> PartsOf(const std::vector<int>& tasks, const BlockTemplate::Loop& loop,
                                int64_t step) const {
    const double wider = tasks == loop.scatters ? loop.wider_sums : loop.wider;
    std::vector<CommSpec> parts;
    for (const int t : tasks) {
      CommSpec comm = in_.comms[block_.spec[t]];
      if (!loop.in_parts) {
        comm.kind = Turns(loop, comm) ? CollectiveKind::kPermute : CollectiveKind::kBroadcast;
      }
      comm.bytes = Share(comm.bytes, static_cast<int>(step), static_cast<int>(loop.pieces));
      if (wider != 1) comm.bytes = std::llround(static_cast<double>(comm.bytes) * wider);
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

  int AddParts(const std::vector<int>& tasks, const BlockTemplate::Loop& loop, int64_t step,
               const std::vector<int>& deps) {
    const int t = tasks[0];
    int last = BlockBuilder::kNone;
    for (const CommSpec& comm : PartsOf(tasks, loop, step)) {
      last = out_.AddComm(comm, block_.stream[t], block_.purpose[t], block_.label[t], deps);
    }
    return last;
  }

  // Parts leave as soon as the ones before them have come.
  void EmitGathers(const BlockTemplate::Loop& loop, std::vector<int>* came) {
    std::vector<int> deps = DepsOfAll(loop.gathers, {});
    const int t = loop.gathers[0];
    came->assign(loop.pieces, BlockBuilder::kNone);
    for (int i = 0; i < loop.steps.packs; ++i) {
      deps = {AddPack(PartsOf(loop.gathers, loop, 0), t, deps)};
    }
    if (loop.steps.gathers) {
      std::vector<CommSpec> parts = PartsOf(loop.gathers, loop, 0);
      for (CommSpec& comm : parts) {
        comm.kind = CollectiveKind::kAllGather;
        comm.bytes *= loop.pieces;
        came->assign(loop.pieces, out_.AddComm(comm, block_.stream[t], block_.purpose[t],
                                               block_.label[t], deps));
      }
      (*came)[0] = BlockBuilder::kNone;
      return;
    }
    for (int64_t i = 0; i < loop.pieces; ++i) {
      const int before = i > 0 ? (*came)[i - 1] : BlockBuilder::kNone;
      for (const CommSpec& comm : PartsOf(loop.gathers, loop, i)) {
        if (AtHand(loop, comm, i)) continue;
        std::vector<int> after = deps;
        if (Turns(loop, comm) && before != BlockBuilder::kNone) after = {before};
        (*came)[i] =
            out_.AddComm(comm, block_.stream[t], block_.purpose[t], block_.label[t], after);
      }
    }
  }

  // A copy of what is about to be sent.
  int AddPack(const std::vector<CommSpec>& parts, int t, const std::vector<int>& deps) {
    KernelSpec pack;
    pack.label = "part_copy";
    for (const CommSpec& comm : parts) {
      pack.read_bytes += static_cast<double>(comm.bytes);
      pack.write_bytes += static_cast<double>(comm.bytes);
    }
    const int op = in_.loops[cuts_[t].loop].op[0];
    pack.dtype = in_.kernels[block_.spec[op]].dtype;
    return out_.AddKernel(pack, block_.purpose[op], block_.label[op], deps);
  }

  // What step `i` made is added to the sum that has come.
  int AddSum(const BlockTemplate::Loop& loop, int64_t i, const std::vector<int>& deps) {
    KernelSpec add;
    add.label = "part_add";
    add.dtype = loop.kernels[i].back().dtype;
    for (const CommSpec& comm : PartsOf(loop.scatters, loop, i)) {
      const double sent = static_cast<double>(comm.bytes);
      const double made = sent * loop.wider / loop.wider_sums;
      add.read_bytes += i > 0 ? made + sent : made;
      add.write_bytes += sent;
    }
    const int t = loop.op[0];
    return out_.AddKernel(add, block_.purpose[t], block_.label[t], deps);
  }

  void EmitLoop(const BlockTemplate::Loop& loop, const std::vector<int>& came, Done* done) {
    const int t = loop.op[0];
    const std::vector<int> before = DepsOfAll(loop.gathers, {});
    std::vector<int> deps = DepsOfAll(loop.op, loop.gathers);
    deps.insert(deps.end(), before.begin(), before.end());
    int& sum = done->sent;  // that has come
    for (int64_t i = 0; i < loop.pieces; ++i) {
      std::vector<int> after = deps;
      if (!came.empty()) after.push_back(came[i]);
      if (loop.steps.waits) {
        if (!came.empty()) after.push_back(came[std::min(i + 1, loop.pieces - 1)]);
        after.push_back(sum);
      }
      int made = BlockBuilder::kNone;
      for (const KernelSpec& kernel : loop.kernels[i]) {
        made = out_.AddKernel(kernel, block_.purpose[t], block_.label[t], after);
        after = {made};
      }
      done->made = made;
      if (loop.scatters.empty()) continue;
      if (loop.in_parts) {
        sum = AddParts(loop.scatters, loop, i, {made});
        continue;
      }
      // The sums of parts travel the other way round to who holds them.
      if (i > 0 || loop.wider_sums > loop.wider) made = AddSum(loop, i, {made, sum});
      for (int pack = 0; pack < loop.steps.sum_packs; ++pack) {
        made = AddPack(PartsOf(loop.scatters, loop, i), t, {made});
      }
      done->made = made;
      const bool sends = i + 1 < loop.pieces || loop.steps.returns_sums;
      sum = sends ? AddParts(loop.scatters, loop, i, {made}) : made;
    }
  }

  // A task of a loop: the last gather stands for all, as does the first task of the op.
  void EmitOfLoop(int t) {
    const BlockTemplate::Loop& loop = in_.loops[cuts_[t].loop];
    if (!loop.gathers.empty() && t == loop.gathers.back()) {
      EmitGathers(loop, &came_[cuts_[t].loop]);
    } else if (!loop.op.empty() && t == loop.op[0]) {
      EmitLoop(loop, came_[cuts_[t].loop], &done_[cuts_[t].loop]);
    }
  }

  // What waits for a task of a loop waits for this.
  int LastOfLoop(int t) const {
    const BlockTemplate::Loop& loop = in_.loops[cuts_[t].loop];
    const Done& done = done_[cuts_[t].loop];
    const bool scatter = std::count(loop.scatters.begin(), loop.scatters.end(), t) > 0;
    const bool op = std::count(loop.op.begin(), loop.op.end(), t) > 0;
    if (scatter && done.sent != BlockBuilder::kNone) return done.sent;
    if (op && done.made != BlockBuilder::kNone) return done.made;
    return std::max(out_.size() - 1, 0);
  }

  BlockTemplate Emit() {
    for (int t = 0; t < block_.size(); ++t) {
      cuts_[t].first = out_.size();
      if (cuts_[t].loop >= 0) {
        EmitOfLoop(t);
        // What is left of a task that another stands for begins and ends with that.
        if (out_.size() == cuts_[t].first) cuts_[t].first = LastOfLoop(t);
      } else if (cuts_[t].cut) {
        block_.kind[t] == TaskKind::kComm ? EmitCollective(t) : EmitProduct(t);
      } else if (block_.kind[t] == TaskKind::kComm) {
        AddComm(t, in_.comms[block_.spec[t]].bytes, Deps(t, BlockBuilder::kNone));
      } else {
        out_.AddKernel(in_.kernels[block_.spec[t]], block_.purpose[t], block_.label[t],
                       Deps(t, BlockBuilder::kNone));
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
    return std::move(out_).Build();
  }

  BlockTemplate in_;
  const Block& block_;
  const DeviceMesh& mesh_;
  bool gathers_ = true;
  std::vector<Cut> cuts_;               // per task of the old block
  std::vector<std::vector<int>> came_;  // per loop, by step: the task that brings the part
  std::vector<Done> done_;              // per loop
  BlockBuilder out_{in_.block.name, in_.block.num_in_ports};
};

BlockTemplate Finished(BlockTemplate cut, std::vector<CommSpec> outside, double corrected_bytes) {
  cut.outside = std::move(outside);
  cut.corrected_bytes = corrected_bytes;
  return cut;
}

}  // namespace

BlockTemplate OverlapProducts(BlockTemplate block, const DeviceMesh& mesh, bool gathers) {
  std::vector<CommSpec> outside = block.outside;
  const double corrected_bytes = block.corrected_bytes;
  Cutter cutter(std::move(block), mesh);
  cutter.PairProducts(gathers);
  return Finished(cutter.Run(), std::move(outside), corrected_bytes);
}

BlockTemplate RunLoops(BlockTemplate block, const DeviceMesh& mesh) {
  if (block.loops.empty()) return block;
  std::vector<CommSpec> outside = block.outside;
  const double corrected_bytes = block.corrected_bytes;
  return Finished(Cutter(std::move(block), mesh).Run(), std::move(outside), corrected_bytes);
}

}  // namespace plancast
