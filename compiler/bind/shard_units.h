#ifndef PLANCAST_COMPILER_BIND_SHARD_UNITS_H_
#define PLANCAST_COMPILER_BIND_SHARD_UNITS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/bind/layer_zones.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// How many neighbouring layers of a list are one unit of sharded data parallelism, or one that
// pieces run through, as the plan (PlanOptions::unit_layers) and nodes of the tree (`unit`) say
// it.
class ShardUnits {
 public:
  ShardUnits(const StrategyTree& tree, const PlanOptions& options, const DeviceMesh& mesh)
      : tree_(tree), options_(options), mesh_(mesh) {}

  // Of the layers of segment `s`, whose ops are told `told`; 1 where nothing of them goes unit by
  // unit on this mesh, and they do not run in pieces. Errors: parts of a layer that are told
  // otherwise than the rest.
  absl::StatusOr<int64_t> Of(const ModelGraph& graph, const std::vector<ZonedModel::Place>& places,
                             int s, const std::vector<Resolved>& told);

  // After all segments: OK if all that is said has an effect and can be had. Errors: units of
  // what is not sharded unit by unit, or of no two neighbours; beside recompute=uniform:N from
  // nodes, activations on the host, or parameters that layers share.
  absl::Status Check(const ModelGraph& graph) const;

 private:
  bool says() const { return options_.unit_layers > 1 || tree_.SaysUnits(); }
  // Whether weights or trained gradients of an op are sharded or whole on the host, by the word of
  // the tree and the plan; `here`: over axes of more than one rank.
  bool GoesByUnits(const Resolved& told, bool frozen, bool here) const;
  bool HasRanks(const Home& home) const;

  // What a node's word reaches; `` is the plan's.
  struct Reach {
    bool layers = false, shards = false, neighbours = false;
  };

  const StrategyTree& tree_;
  const PlanOptions& options_;
  const DeviceMesh& mesh_;
  std::map<std::string, Reach> reach_;  // by node
  bool joins_ = false;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_SHARD_UNITS_H_
