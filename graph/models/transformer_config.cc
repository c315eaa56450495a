#include "graph/models/transformer_config.h"

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

struct Size {
  absl::string_view name;
  int64_t value;
  // Far above any model; products of sizes stay within 64 bits.
  int64_t high;
  bool optional = false;
};

}  // namespace

absl::StatusOr<TransformerConfig> Completed(TransformerConfig config) {
  for (const Size& size :
       {Size{"layers", config.layers, 10'000}, Size{"hidden", config.hidden, 1'000'000},
        Size{"heads", config.heads, 100'000}, Size{"kv_heads", config.kv_heads, 100'000, true},
        Size{"head_dim", config.head_dim, 1'000'000, true},
        Size{"ffn", config.ffn, 10'000'000, true}, Size{"vocab", config.vocab, 100'000'000},
        Size{"seq", config.seq, 100'000'000},
        Size{"max_positions", config.max_positions, 100'000'000, true},
        Size{"token_types", config.token_types, 1'000'000, true}}) {
    if (size.value == 0 && size.optional) continue;
    if (size.value == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the model has no `", size.name, "`."));
    }
    if (size.value < 0 || size.value > size.high) {
      return absl::InvalidArgumentError(absl::StrCat("`", size.name, "` is ", size.value,
                                                     "; it must be from 1 to ", size.high, "."));
    }
  }
  if (config.gated() && config.mlp_bias) {
    return absl::UnimplementedError(
        "not supported yet: biases in a gated feed-forward layer. Leave `mlp_bias` out.");
  }
  if (config.ffn == 0) config.ffn = 4 * config.hidden;
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.heads % config.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", config.heads, " heads are not divisible by the ", config.kv_heads, " kv_heads."));
  }
  if (config.head_dim == 0) {
    if (config.hidden % config.heads != 0) {
      return absl::InvalidArgumentError(absl::StrCat("hidden ", config.hidden,
                                                     " is not divisible by the ", config.heads,
                                                     " heads, and there is no `head_dim`."));
    }
    config.head_dim = config.hidden / config.heads;
  }
  if (config.position == Position::kLearned) {
    if (config.max_positions == 0) config.max_positions = config.seq;
    if (config.max_positions < config.seq) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequences of ", config.seq, " tokens do not fit the ", config.max_positions,
                       " learned positions. Choose seq=", config.max_positions, " or less."));
    }
  } else {
    config.max_positions = 0;
  }
  if (config.post_norm && config.parallel_residual) {
    return absl::InvalidArgumentError(
        "a model cannot have both `post_norm` and `parallel_residual`.");
  }
  return config;
}

}  // namespace plancast
