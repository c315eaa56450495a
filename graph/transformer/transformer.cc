#include "graph/transformer/transformer.h"

#include <vector>

#include "base/status_macros.h"
#include "graph/transformer/drawing.h"
#include "graph/transformer/embedding_and_head.h"
#include "graph/transformer/layer.h"
#include "graph/transformer/layer_pattern.h"
#include "graph/transformer/multi_token.h"

namespace plancast {
namespace {

int IndexOf(const Body& body, absl::string_view tensor) {
  for (size_t i = 0; i < body.tensors.size(); ++i) {
    if (body.tensors[i].name == tensor) return static_cast<int>(i);
  }
  return -1;
}

// Two segments share all parameters of the same names.
void TieAll(int first, int second, ModelGraph* graph) {
  const Body& one = graph->bodies[graph->segments[first].body];
  const Body& two = graph->bodies[graph->segments[second].body];
  for (size_t i = 0; i < one.tensors.size(); ++i) {
    if (one.tensors[i].kind != TensorInfo::Kind::kParameter) continue;
    graph->tied.push_back({first, static_cast<int>(i), second, IndexOf(two, one.tensors[i].name)});
  }
}

// Each hands on other streams, so that each has a body of its own.
void AddMultiToken(const Drawing& drawing, ModelGraph* graph) {
  const LayerKind last = LayerPattern(drawing.config).back().kind;
  for (int64_t depth = 1; depth <= drawing.config.mtp_layers; ++depth) {
    graph->segments.push_back({"mtp", static_cast<int>(graph->bodies.size()), 1, true});
    graph->bodies.push_back(DrawMultiToken(drawing, last, depth));
    TieAll(0, static_cast<int>(graph->segments.size()) - 1, graph);
  }
}

// The layers as segments, one a run; equal kinds share a body.
void AddLayers(const Drawing& drawing, ModelGraph* graph) {
  std::vector<LayerKind> kinds;
  const int first = static_cast<int>(graph->bodies.size());
  for (const LayerRun& run : LayerPattern(drawing.config)) {
    size_t k = 0;
    while (k < kinds.size() && !(kinds[k] == run.kind)) ++k;
    if (k == kinds.size()) {
      kinds.push_back(run.kind);
      graph->bodies.push_back(DrawLayer(drawing, run.kind));
    }
    graph->segments.push_back({"layers", first + static_cast<int>(k), run.count, true});
  }
}

}  // namespace

absl::StatusOr<ModelGraph> BuildTransformer(const TransformerConfig& given,
                                            const TransformerChoices& choices) {
  ASSIGN_OR_RETURN(const TransformerConfig config, Completed(given));
  ModelGraph graph;
  graph.name = config.name;
  graph.dims = TransformerDims(config, choices);
  const Drawing drawing{config, choices, graph.dims};
  graph.bodies.push_back(DrawEmbedding(drawing));
  graph.segments.push_back({"embedding", 0, 1, false});
  AddLayers(drawing, &graph);
  AddMultiToken(drawing, &graph);
  const int head = static_cast<int>(graph.segments.size());
  graph.segments.push_back({"head", static_cast<int>(graph.bodies.size()), 1, false});
  graph.bodies.push_back(DrawHead(drawing));
  if (config.tied_embeddings) {
    graph.tied.push_back({0, IndexOf(graph.bodies.front(), "tokens.w"), head,
                          IndexOf(graph.bodies.back(), "logits.w")});
  }
  graph.layers = config.layers;
  graph.hidden = config.hidden;
  graph.heads = config.heads;
  graph.head_dim = config.head_dim;
  graph.seq = config.seq;
  graph.documents = config.documents;
  if (config.experts.groups > 0) {
    graph.expert_groups = config.experts.groups;
    graph.groups_per_token = config.experts.groups_per_token;
  }
  graph.vocab = config.vocab;
  RETURN_IF_ERROR(graph.Verify()) << config.name;
  return graph;
}

}  // namespace plancast
