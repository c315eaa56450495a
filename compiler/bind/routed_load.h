#ifndef PLANCAST_COMPILER_BIND_ROUTED_LOAD_H_
#define PLANCAST_COMPILER_BIND_ROUTED_LOAD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/execution/execution_graph.h"
#include "graph/layout/layout.h"
#include "graph/model/model_graph.h"
#include "graph/row_copies.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// Unlike expected loads of a routed dim (experts), as a plan cuts it: each device has
// the mean of its part.
struct RoutedLoad {
  int dim = -1;             // of the model; -1: loads are alike
  std::vector<bool> slots;  // by model dim: slots of the routed dim run over it
  Skew skew;

  bool empty() const { return skew.empty(); }
  // Whether the op works on the slots of a part of the dim.
  bool Holds(const OpNode& op, const FactorSplit& split) const;
  // Whether a tensor in this layout has the slots of a part of the dim.
  bool Holds(const TensorInfo& tensor, const Layout& layout) const;
};

// How many copies of each row of what it was made from a tensor of `body` holds: each
// token goes to so many slots, of so many groups of experts. 1 where nothing is routed. `deals`: by
// a gate that deals them out.
RowCopies CopiesIn(const ModelGraph& graph, const Body& body, const TensorInfo& tensor, bool deals);

// By the loads that `tree` says. Errors: a dim that is not there or that nothing is
// routed over; a number of loads that is not its size; loads that are negative or all
// 0; a dim that ops cut over different axes.
absl::StatusOr<RoutedLoad> LoadOf(const ModelGraph& graph, const StrategyTree& tree,
                                  const std::vector<BoundBody>& bodies, const DeviceMesh& mesh);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_ROUTED_LOAD_H_
