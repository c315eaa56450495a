#include "compiler/lower/overlap_products.h"

#include <algorithm>
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
  int first = 0, last = 0;
};

class Cutter {
 public:
  Cutter(BlockTemplate in, const DeviceMesh& mesh, bool gathers)
      : in_(std::move(in)),
        block_(in_.block),
        mesh_(mesh),
        gathers_(gathers),
        cuts_(block_.size()) {}

  BlockTemplate Run() {
    for (int t = 0; t < block_.size(); ++t) {
      if (!IsCollective(t)) continue;
      const CollectiveKind kind = in_.comms[block_.spec[t]].kind;
      if (kind == CollectiveKind::kAllGather && gathers_) PairGather(t);
      if (kind == CollectiveKind::kReduceScatter) PairScatter(t);
    }
    const bool any = std::any_of(cuts_.begin(), cuts_.end(), [](const Cut& c) { return c.cut; });
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
           block_.purpose[t] != Purpose::kRecompute;
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

  BlockTemplate Emit() {
    for (int t = 0; t < block_.size(); ++t) {
      cuts_[t].first = out_.size();
      if (cuts_[t].cut) {
        block_.kind[t] == TaskKind::kComm ? EmitCollective(t) : EmitProduct(t);
      } else if (block_.kind[t] == TaskKind::kComm) {
        AddComm(t, in_.comms[block_.spec[t]].bytes, Deps(t, BlockBuilder::kNone));
      } else {
        out_.AddKernel(in_.kernels[block_.spec[t]], block_.purpose[t], block_.label[t],
                       Deps(t, BlockBuilder::kNone));
      }
      cuts_[t].last = out_.size() - 1;
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
  const bool gathers_;
  std::vector<Cut> cuts_;  // per task of the old block
  BlockBuilder out_{in_.block.name, in_.block.num_in_ports};
};

}  // namespace

BlockTemplate OverlapProducts(BlockTemplate block, const DeviceMesh& mesh, bool gathers) {
  std::vector<CommSpec> outside = block.outside;
  const double corrected_bytes = block.corrected_bytes;
  BlockTemplate cut = Cutter(std::move(block), mesh, gathers).Run();
  cut.outside = std::move(outside);
  cut.corrected_bytes = corrected_bytes;
  return cut;
}

}  // namespace plancast
