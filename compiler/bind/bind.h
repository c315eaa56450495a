#ifndef PLANCAST_COMPILER_BIND_BIND_H_
#define PLANCAST_COMPILER_BIND_BIND_H_

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/bind/layer_zones.h"
#include "compiler/bind/routed_load.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// A bound body run `count` times in a row inside a virtual stage.
struct StageRun {
  int segment = 0;
  int bound_body = 0;       // into BoundModel::bodies
  int64_t layer_begin = 0;  // counted over the list
  int64_t count = 1;
  int joined = -1;  // the bound body, if that joins layers: variants of it keep this
};

// The model laid onto a mesh: micro-batch bound, every op with its split, every
// repeat of every body on a virtual stage.
struct BoundModel {
  ModelGraph graph;                       // its lists cut into zones (layer_zones.h)
  std::vector<ZonedModel::Place> places;  // per segment
  // The first segment of each virtual stage, where options say the cuts; where the vocabulary is
  // spread over the stages, of the input layer, what is between, and the output layer.
  std::vector<int> begins;
  DeviceMesh mesh;                // axes outermost first, sub-axes cut
  std::vector<BoundBody> bodies;  // one a segment, then variants
  RoutedLoad load;
  std::vector<std::vector<StageRun>> stages;  // per virtual stage, in forward order
  // Per body: it is on a stage that the plan writes (PlanOptions::own_stages). Of others only what
  // divides is cut, to say in which layout they would read. Empty: all are.
  std::vector<bool> held;
  bool Holds(size_t body) const { return held.empty() || held[body]; }
  // The segment as which a body leaves that runs from this one on (joined_layers.h).
  int LastOf(size_t body, int segment) const {
    return std::max(segment, bodies[body].last_segment);
  }
  // Whether nobody reads what leaves there.
  bool EndsModel(size_t body, int segment) const {
    const int last = LastOf(body, segment);
    return last + 1 == static_cast<int>(graph.segments.size()) && graph.segments[last].repeat == 1;
  }
  // Of a model whose vocabulary is spread: the segment is of the input or the output layer.
  bool IsSpread(int segment) const { return segment < begins[1] || segment >= begins[2]; }

  std::string DebugString() const;
};

// `whole_rules`: what the plan as a whole says of tp does not cut ops of these rules.
// Errors: unknown axis or dim in a split, sizes that do not divide, layout that
// does not cover the layers.
absl::StatusOr<BoundModel> Bind(const ModelGraph& graph, const StrategyTree& tree,
                                const PlanOptions& options,
                                const std::set<std::string>& whole_rules = {});
// Every op with a batch is cut over `dp` at its batch, and nothing else is: what ops read
// and make does not change with the number of data-parallel ranks.
bool OnlyBatchIsDataParallel(const BoundModel& bound);

// The repeats of the segments, dealt to the virtual stages of options.layout. Modules in lists
// (all, if there is no list) are the layers that `layout` counts; the others stay with the layer
// before them, or with the first. With options.cuts, as `bound` was cut there. Where the vocabulary
// is spread each stage has the output layer as its second and the input layer as its third chunk.
// Errors: a layout that does not cover the layers, or leaves a stage empty.
absl::StatusOr<std::vector<std::vector<StageRun>>> DealLayers(const BoundModel& bound,
                                                              const PlanOptions& options);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_BIND_H_
