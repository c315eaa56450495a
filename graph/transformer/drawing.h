#ifndef PLANCAST_GRAPH_TRANSFORMER_DRAWING_H_
#define PLANCAST_GRAPH_TRANSFORMER_DRAWING_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "graph/model/model_graph.h"
#include "graph/transformer/body_writer.h"
#include "graph/transformer/transformer_choices.h"
#include "graph/transformer/transformer_config.h"

namespace plancast {

// What the parts of a transformer are drawn from; `config` is Completed. Ints are
// tensors of the body being written; `x` is a stream [batch, seq, hidden].
struct Drawing {
  const TransformerConfig& config;
  const TransformerChoices& choices;
  const std::vector<ModelDim>& dims;

  // The model's norm, over hidden unless `said` names another dim for h.
  int Norm(BodyWriter& body, absl::string_view name, int x, FactorDims said = {}) const;
  // What ends a branch: the bias of its last linear `MODULE.LINEAR`, a norm, dropout
  // and the addition to the stream. Returns the stream.
  int AddBranch(BodyWriter& body, absl::string_view module, absl::string_view linear, bool bias,
                int x, int branch) const;
  // The stream of the layers, and those of `ahead` modules of multi-token prediction, as in-ports.
  std::vector<int> Streams(BodyWriter& body, int64_t ahead) const;
  // The activation between the linears of a feed-forward layer of width `ffn`.
  int Activation(BodyWriter& body, absl::string_view name, const std::vector<int>& wide,
                 absl::string_view ffn) const;
};

// The dims of the model, padded as the choices say.
std::vector<ModelDim> TransformerDims(const TransformerConfig& config,
                                      const TransformerChoices& choices);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_DRAWING_H_
