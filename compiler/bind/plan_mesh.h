#ifndef PLANCAST_COMPILER_BIND_PLAN_MESH_H_
#define PLANCAST_COMPILER_BIND_PLAN_MESH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// The mesh of a plan: its axes outermost first, each cut into as many sub-axes as
// the splits need, which is the common refinement of all views of the devices (AxisCuts):
// - each level of a hierarchy that some node says (`heads/4, seq/2`) is sub-axes of its own;
// - the part of the ranks that a node is on (`on: {dp: 0/2}`) is all of the inner sub-axes;
// - where key heads are fewer than tp, the axis is spread over them and the query
//   heads of each;
// - the expert mesh. The ranks of a stage, tp innermost and dp outermost, are also
//   etp innermost, then ep, then what is left: `etp`, `ep` and `edp` are views of
//   the sub-axes. So with etp=tp, ep is the inner part of dp; with etp=1 it is tp
//   and then the inner part of dp;
// - sharded data parallelism: the ranks of a shard group are the inner part of dp, and
//   those that keep parameters after the forward pass the inner part of that.
// Errors: cuts of one axis that do not nest, levels whose product is not its size.
absl::StatusOr<DeviceMesh> MeshOf(const ModelGraph& graph, const StrategyTree& tree,
                                  const PlanOptions& options);

// Where sharded data parallelism cuts dp, as numbers of consecutive ranks that stay
// together.
std::vector<int64_t> ShardCuts(const PlanOptions& options);

// Whether this names an axis of the expert mesh.
bool IsExpertView(absl::string_view axis);
// Whether the ranks along a mesh axis work on other data: it is one of dp or cp.
bool IsDataAxis(const DeviceMesh& mesh, int axis);
// These axes, those of one rank left out.
std::vector<int> DataAxes(const DeviceMesh& mesh);

// `heads` stands for these dims together, outer first.
inline constexpr absl::string_view kCompoundHeads = "heads";
inline constexpr absl::string_view kHeadDims[] = {"kv_heads", "heads_per_kv"};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_PLAN_MESH_H_
