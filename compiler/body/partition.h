#ifndef PLANCAST_COMPILER_BODY_PARTITION_H_
#define PLANCAST_COMPILER_BODY_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"

namespace plancast {

// Gives every step the layouts of its tensors and the reductions it owes
// inside, from its op's split. A derived rule inherits the split by factor name.
absl::StatusOr<DifferentiatedBody> PartitionBody(const ModelGraph& graph, const DeviceMesh& mesh,
                                                 const BoundBody& bound, DifferentiatedBody body);

// Global sizes of the factors of `rule` (the op's own or one derived from it).
std::vector<int64_t> FactorExtents(const ModelGraph& graph, const OpNode& op, const OpRule& rule);

// The same on the largest shard.
std::vector<int64_t> LocalExtents(const ModelGraph& graph, const DeviceMesh& mesh, const OpNode& op,
                                  const FactorSplit& split, const OpRule& rule);

// `split` of the op's rule, rewritten for a rule with the same factor names.
FactorSplit SplitFor(const OpRule& rule, const OpNode& op, const FactorSplit& split);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_PARTITION_H_
