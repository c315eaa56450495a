#ifndef PLANCAST_GRAPH_MODEL_CUT_SEGMENTS_H_
#define PLANCAST_GRAPH_MODEL_CUT_SEGMENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/model/model_cut.h"
#include "graph/model/model_graph.h"

namespace plancast {

// A model whose segments end where it is cut.
struct CutModel {
  ModelGraph graph;
  // The first segment of each part: 0, then one for each cut.
  std::vector<int> begins;
};

// Cuts the model in parts, also inside of modules: a module that is cut becomes pieces, segments
// of one path (Segment::continues) with bodies of their own. The ports of a piece are the tensors
// that are alive there: made before and read after, whether or not the piece reads them itself.
// No gradient comes back where the rest passes none on (Body::out_detached). A parameter that
// several pieces read is tied. Equal pieces share a body.
// Errors: cuts that do not ascend, are not inside of the model, or leave a part without ops.
absl::StatusOr<CutModel> CutSegments(const ModelGraph& graph, absl::Span<const ModelCut> cuts);

// Whether a segment is a part of a module that is cut.
bool IsPiece(const ModelGraph& graph, int segment);

// The activations of a body that cross from before op `op` to the rest, as tensors in ascending
// order; with op 0 those that enter it.
std::vector<int> LiveTensors(const Body& body, int op);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_CUT_SEGMENTS_H_
