#ifndef PLANCAST_GRAPH_MODELS_TRANSFORMER_CONFIG_H_
#define PLANCAST_GRAPH_MODELS_TRANSFORMER_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

enum class Mlp : uint8_t { kGelu, kSwiglu, kRelu, kGeglu };
enum class Norm : uint8_t { kLayerNorm, kRmsNorm };
// kAlibi adds a slope to the attention scores inside the softmax kernel: no op
// of its own.
enum class Position : uint8_t { kLearned, kRope, kAlibi, kNone };

// A dense transformer: decoder (GPT, Llama, ...) or encoder (BERT).
// proto/transformer.proto documents every field; 0 stands for absent.
struct TransformerConfig {
  std::string name;
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0,
          seq = 0;
  Mlp mlp = Mlp::kGelu;
  Norm norm = Norm::kLayerNorm;
  Position position = Position::kLearned;
  int64_t max_positions = 0;
  bool tied_embeddings = false;
  bool qkv_bias = false, out_bias = false, mlp_bias = false, head_bias = false;
  bool parallel_residual = false;
  bool qk_norm = false;
  bool bidirectional = false;
  bool post_norm = false;
  int64_t token_types = 0;
  bool embedding_norm = false;
  bool head_transform = false;

  bool gated() const { return mlp == Mlp::kSwiglu || mlp == Mlp::kGeglu; }
};

// The config with absent fields filled in, or what is wrong with it: sizes not
// positive or absurd, heads not divisible by kv_heads, ...
absl::StatusOr<TransformerConfig> Completed(TransformerConfig config);

// The JSON of proto/transformer.proto; `what` names the input in errors. The
// result is Completed.
absl::StatusOr<TransformerConfig> ParseTransformerConfig(absl::string_view json,
                                                         absl::string_view what);
// Canonical JSON: equal configs give equal text.
std::string TransformerConfigJson(const TransformerConfig& config);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODELS_TRANSFORMER_CONFIG_H_
