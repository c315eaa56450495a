#ifndef PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_CONFIG_H_
#define PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/enum_names.h"

namespace plancast {

// Names as in TransformerConfig; where a file names none, the first holds.
enum class Mlp : uint8_t { kGelu, kSwiglu, kRelu, kGeglu, kSwigluClamped };
inline constexpr auto kMlpNames = NamesOf<Mlp>("gelu", "swiglu", "relu", "geglu", "swiglu_clamped");
enum class Norm : uint8_t { kLayerNorm, kRmsNorm };
inline constexpr auto kNormNames = NamesOf<Norm>("layernorm", "rmsnorm");
// kAlibi adds a slope to the attention scores inside the softmax kernel: no op
// of its own.
enum class Position : uint8_t { kLearned, kRope, kAlibi, kNone };
inline constexpr auto kPositionNames = NamesOf<Position>("learned", "rope", "alibi", "none");
enum class RouterScore : uint8_t { kSoftmax, kSigmoid };
inline constexpr auto kRouterScoreNames = NamesOf<RouterScore>("softmax", "sigmoid");

// Latent attention, in place of heads of head_dim.
struct LatentAttention {
  int64_t q_rank = 0;  // 0: queries are projected at once
  int64_t kv_rank = 0, own_dim = 0, rotated_dim = 0, value_dim = 0;

  bool present() const { return kv_rank > 0; }
};

// Mixture of experts, in place of the feed-forward of some layers.
struct ExpertsConfig {
  int64_t count = 0, topk = 0, ffn = 0;  // ffn: width of one expert
  int64_t shared = 0;                    // times ffn: width of what all tokens visit
  bool shared_gate = false;
  int64_t dense_layers = 0, every = 1;
  RouterScore score = RouterScore::kSoftmax;
  bool normalized = true;
  bool router_bias = false;
  int64_t groups = 0, groups_per_token = 0;  // 0: a token chooses among all
  double capacity_factor = 1;

  bool present() const { return count > 0; }
};

// A transformer: decoder (GPT, Llama, ...) or encoder (BERT).
// proto/transformer.proto documents every field; 0 stands for absent.
struct TransformerConfig {
  std::string name;
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0,
          seq = 0;
  std::vector<int64_t> documents;  // ModelGraph::documents
  Mlp mlp = Mlp::kGelu;
  Norm norm = Norm::kLayerNorm;
  Position position = Position::kLearned;
  int64_t max_positions = 0;
  bool rotary_scaled = false;
  bool tied_embeddings = false;
  bool qkv_bias = false, out_bias = false, mlp_bias = false, head_bias = false;
  bool parallel_residual = false;
  bool qk_norm = false;
  bool bidirectional = false;
  bool post_norm = false, branch_norm = false;
  int64_t token_types = 0;
  bool embedding_norm = false, embedding_scale = false;
  bool head_transform = false, head_softcap = false, sentence_head = false;
  int64_t window = 0;
  std::string window_pattern;
  bool attention_sinks = false, attention_softcap = false;
  LatentAttention latent;
  ExpertsConfig experts;
  int64_t mtp_layers = 0, predictions = 0;

  bool gated() const {
    return mlp == Mlp::kSwiglu || mlp == Mlp::kGeglu || mlp == Mlp::kSwigluClamped;
  }
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

#endif  // PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_CONFIG_H_
