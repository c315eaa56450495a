#ifndef PLANCAST_GRAPH_SPLIT_HALO_INFERENCE_H_
#define PLANCAST_GRAPH_SPLIT_HALO_INFERENCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "cluster/device_mesh.h"
#include "graph/split/op_split.h"

namespace plancast {

// Gives every factor the axes of all factors it is tied to.
void AlignTiedCuts(const OpRule& rule, FactorSplit* split);

// Which part of every factor each statement runs over, and of every tensor each
// device holds, where index maps tie factors: from outputs back to inputs (the
// bounds inference of Halide).
//
// - The owner of a class of tied factors in a statement is the one among the
//   target's dims: each device makes its block of the target. If the target has
//   none the class is reduced, and the owner is a factor that no map fixes.
// - Factors that a promise (`r follows s`) ties to the owner have its part, unless
//   the target has them too.
// - The other factors of the class follow through the maps. What a statement
//   reads beyond the block of a tensor is that tensor's halo: inputs are asked
//   for with it, intermediate results are computed as far as they are read.
struct HaloPlan {
  std::vector<StatementCut> statements;
  std::vector<std::vector<int>> owned_dims;  // by tensor: dims that are cut
  std::vector<std::vector<Halo>> halos;      // by tensor and dim
  // By statement: factors of cut classes that the target has nothing of.
  std::vector<std::vector<int>> reduced;
};

// `split` is aligned and checked. Tensors that nearly everything of is read from
// lose their cut.
HaloPlan InferHalos(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh,
                    const std::vector<int64_t>& extents);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_SPLIT_HALO_INFERENCE_H_
