#ifndef PLANCAST_COMPILER_BIND_LAYER_ZONES_H_
#define PLANCAST_COMPILER_BIND_LAYER_ZONES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/model/model_graph.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// A model whose lists are cut where a strategy tells layers apart. A zone is all layers of
// a list that are told the same; between two zones stands a hand-over, a module without ops,
// where tensors go from the layout that one zone reads and writes to that of the next.
struct ZonedModel {
  // Where a segment is in its list; outside of lists it is all that there is.
  struct Place {
    int zone = 0;             // the first segment of its zone; what continues a module: itself
    int alike = 0;            // the first in its zone that has its body
    int64_t first_layer = 0;  // index in the list
    int64_t layers = 1;       // of the list
  };

  ModelGraph graph;
  std::vector<Place> places;  // per segment
  std::vector<int> firsts;    // per segment of the graph as it was, its first piece
};

// A tree that tells no layers apart leaves the graph as it is.
absl::StatusOr<ZonedModel> CutIntoZones(ModelGraph graph, const StrategyTree& tree);

// Whether nothing is computed there: tensors change their layout.
bool IsHandOver(const ModelGraph& graph, const Segment& segment);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_LAYER_ZONES_H_
