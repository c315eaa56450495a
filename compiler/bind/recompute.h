#ifndef PLANCAST_COMPILER_BIND_RECOMPUTE_H_
#define PLANCAST_COMPILER_BIND_RECOMPUTE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "strategy/recompute/recompute_set.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// Whether a set covers an op of a body. `norms_in_products`: a norm that one product alone reads
// is where that is.
bool Covers(const RecomputeSet& set, const Body& body, size_t op, bool norms_in_products);

// Ops of the model's layers, and those of them that a set covers.
struct CoveredOps {
  int64_t all = 0, covered = 0;
};
CoveredOps CoveredBy(const RecomputeSet& set, const ModelGraph& graph, bool norms_in_products);

// What the backward phase runs again of a body whose ops have these directives and
// splits. `selective`: the words that plain `selective` stands for
// (strategy/recompute/recompute_set.h). Sets of ops are for layers (segments in lists), and so is
// what the root says.
// Errors: words that are no set of ops.
absl::StatusOr<std::vector<OpReplay>> ReplaysOf(const Body& body, bool in_list,
                                                const std::vector<Resolved>& directives,
                                                const std::vector<FactorSplit>& splits,
                                                const DeviceMesh& mesh,
                                                const std::vector<std::string>& selective,
                                                bool norms_in_products);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_RECOMPUTE_H_
