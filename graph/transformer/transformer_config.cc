#include "graph/transformer/transformer_config.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/model/packed_documents.h"

namespace plancast {
namespace {

struct Size {
  absl::string_view name;
  int64_t value;
  // Far above any model; products of sizes stay within 64 bits.
  int64_t high;
  bool optional = false;
};

absl::Status CheckSize(const Size& size) {
  if (size.value == 0 && size.optional) return absl::OkStatus();
  if (size.value == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the model has no `", size.name, "`."));
  }
  if (size.value > 0 && size.value <= size.high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("`", size.name, "` is ", size.value, "; it must be from 1 to ", size.high, "."));
}

absl::Status Unsupported(absl::string_view what, absl::string_view remedy) {
  return absl::UnimplementedError(absl::StrCat("not supported yet: ", what, ". ", remedy));
}

absl::Status CheckSizes(const TransformerConfig& config) {
  for (const Size& size :
       {Size{"layers", config.layers, 10'000}, Size{"hidden", config.hidden, 1'000'000},
        Size{"heads", config.heads, 100'000}, Size{"kv_heads", config.kv_heads, 100'000, true},
        Size{"head_dim", config.head_dim, 1'000'000, true},
        Size{"ffn", config.ffn, 10'000'000, true}, Size{"vocab", config.vocab, 100'000'000},
        Size{"seq", config.seq, 100'000'000},
        Size{"max_positions", config.max_positions, 100'000'000, true},
        Size{"token_types", config.token_types, 1'000'000, true},
        Size{"window", config.window, 100'000'000, true},
        Size{"mtp_layers", config.mtp_layers, 16, true},
        Size{"predictions", config.predictions, config.seq, true}}) {
    RETURN_IF_ERROR(CheckSize(size));
  }
  return absl::OkStatus();
}

absl::Status CheckAttention(const TransformerConfig& config) {
  for (char kind : config.window_pattern) {
    if (kind == 'w' || kind == 'f') continue;
    return absl::InvalidArgumentError(
        absl::StrCat("`window_pattern` is `", config.window_pattern,
                     "`; it is written with `w` for a layer with a window and `f` for a full one, "
                     "such as `wf`."));
  }
  if (!config.window_pattern.empty() && config.window == 0) {
    return absl::InvalidArgumentError(
        "there is a `window_pattern` and no `window`. Say how many positions it holds.");
  }
  const bool special = config.window > 0 || config.attention_sinks || config.attention_softcap;
  if (config.rotary_scaled && (config.position != Position::kRope || config.latent.present())) {
    return absl::InvalidArgumentError(
        "`rotary_scaled` is of rotary positions of whole heads. Say `position: rope`, and nothing "
        "of latent attention, or leave it out.");
  }
  if (config.bidirectional && special) {
    return Unsupported("windows, sinks or capped logits in bidirectional attention",
                       "Leave `window`, `attention_sinks` and `attention_softcap` out.");
  }
  if (config.attention_sinks && config.attention_softcap) {
    return Unsupported("sinks and capped logits in one attention",
                       "Leave `attention_sinks` or `attention_softcap` out.");
  }
  return absl::OkStatus();
}

absl::Status CompleteLatent(TransformerConfig* config) {
  const LatentAttention& latent = config->latent;
  if (!latent.present()) {
    if (latent.q_rank + latent.own_dim + latent.rotated_dim + latent.value_dim == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "sizes of latent attention are given, and no `kv_lora_rank`. Give it, or leave "
        "`q_lora_rank`, `qk_nope_head_dim`, `qk_rope_head_dim` and `v_head_dim` out.");
  }
  for (const Size& size : {Size{"q_lora_rank", latent.q_rank, 1'000'000, true},
                           Size{"kv_lora_rank", latent.kv_rank, 1'000'000},
                           Size{"qk_nope_head_dim", latent.own_dim, 1'000'000},
                           Size{"qk_rope_head_dim", latent.rotated_dim, 1'000'000},
                           Size{"v_head_dim", latent.value_dim, 1'000'000}}) {
    RETURN_IF_ERROR(CheckSize(size));
  }
  const int64_t head_dim = latent.own_dim + latent.rotated_dim;
  RETURN_IF_ERROR(CheckSize({"qk_nope_head_dim + qk_rope_head_dim", head_dim, 1'000'000}));
  if (config->kv_heads != config->heads) {
    return absl::InvalidArgumentError(
        absl::StrCat("latent attention has as many key heads as heads (", config->heads, "), and ",
                     "`kv_heads` is ", config->kv_heads, ". Leave it out."));
  }
  if (config->bidirectional || config->window > 0 || config->attention_sinks ||
      config->attention_softcap || config->qk_norm || config->qkv_bias) {
    return Unsupported(
        "latent attention with biases, windows, sinks, capped logits, head norms or "
        "in both directions",
        "Leave those fields out.");
  }
  if (config->position != Position::kRope) {
    return absl::InvalidArgumentError(
        "latent attention rotates a part of every head. Say `position: rope`.");
  }
  config->head_dim = head_dim;
  return absl::OkStatus();
}

absl::Status CheckDocuments(const TransformerConfig& config) {
  for (const int64_t length : config.documents) {
    if (length >= 1 && length <= kMostDocumentTokens) continue;
    return absl::InvalidArgumentError(absl::StrCat("`documents` has one of ", length,
                                                   " tokens; lengths must be from 1 to ",
                                                   kMostDocumentTokens, "."));
  }
  if (static_cast<int64_t>(config.documents.size()) > kMostDocuments) {
    return absl::InvalidArgumentError(absl::StrCat("`documents` lists ", config.documents.size(),
                                                   " lengths; ", kMostDocuments, " are the most."));
  }
  double tokens = 0;
  for (const int64_t length : config.documents) tokens += static_cast<double>(length);
  const double each =
      static_cast<double>(config.seq) * static_cast<double>(config.documents.size());
  if (each > tokens * static_cast<double>(kMostDocuments)) {
    return absl::InvalidArgumentError(absl::StrCat("sequences of ", config.seq,
                                                   " tokens are packed from more than ",
                                                   kMostDocuments, " `documents`."));
  }
  if (config.bidirectional && !config.documents.empty()) {
    return Unsupported("documents in a sequence that is read both ways", "Leave `documents` out.");
  }
  return absl::OkStatus();
}

absl::Status CompleteExperts(TransformerConfig* config) {
  ExpertsConfig& experts = config->experts;
  if (!experts.present()) {
    if (experts.topk == 0 && experts.ffn == 0 && experts.shared == 0 && experts.dense_layers == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "sizes of experts are given, and no `experts`. Say how many there are, or leave `topk`, "
        "`moe_ffn`, `shared_experts` and `dense_layers` out.");
  }
  if (experts.ffn == 0) experts.ffn = config->ffn;
  for (const Size& size :
       {Size{"experts", experts.count, 1'000'000}, Size{"topk", experts.topk, experts.count},
        Size{"moe_ffn", experts.ffn, 10'000'000},
        Size{"shared_experts", experts.shared, 10'000, true},
        Size{"dense_layers", experts.dense_layers, config->layers, true},
        Size{"moe_every", experts.every, config->layers}}) {
    RETURN_IF_ERROR(CheckSize(size));
  }
  if (experts.capacity_factor < 0.01 || experts.capacity_factor > 1000) {
    return absl::InvalidArgumentError(absl::StrCat("`capacity_factor` is ", experts.capacity_factor,
                                                   "; it must be from 0.01 to 1000."));
  }
  if (experts.groups != 0 || experts.groups_per_token != 0) {
    RETURN_IF_ERROR(CheckSize({"expert_groups", experts.groups, experts.count}));
    RETURN_IF_ERROR(CheckSize({"groups_per_token", experts.groups_per_token, experts.groups}));
    if (experts.count % experts.groups != 0) {
      return absl::InvalidArgumentError(absl::StrCat("the ", experts.count,
                                                     " experts are not divisible by the ",
                                                     experts.groups, " `expert_groups`."));
    }
    const int64_t open = experts.count / experts.groups * experts.groups_per_token;
    if (experts.topk > open) {
      return absl::InvalidArgumentError(
          absl::StrCat("`topk` is ", experts.topk, ", and `groups_per_token` groups have ", open,
                       " experts. Give more `groups_per_token`, or fewer `expert_groups`."));
    }
  }
  if (experts.shared_gate && experts.shared == 0) {
    return absl::InvalidArgumentError(
        "there is a `shared_expert_gate` and no shared expert. Give `shared_experts`.");
  }
  if (config->mlp_bias && experts.shared > 0) {
    return Unsupported("biases in shared experts", "Say `mlp_bias: false`.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TransformerConfig> Completed(TransformerConfig config) {
  RETURN_IF_ERROR(CheckSizes(config));
  if (config.ffn == 0) config.ffn = 4 * config.hidden;
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.heads % config.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", config.heads, " heads are not divisible by the ", config.kv_heads, " kv_heads."));
  }
  RETURN_IF_ERROR(CheckAttention(config));
  RETURN_IF_ERROR(CheckDocuments(config));
  RETURN_IF_ERROR(CompleteLatent(&config));
  RETURN_IF_ERROR(CompleteExperts(&config));
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
  if (config.mtp_layers > 0 && (config.bidirectional || config.post_norm)) {
    return Unsupported("multi-token prediction in a model that reads both ways or norms behind",
                       "Leave `mtp_layers` out.");
  }
  if (config.mtp_layers > 0 && config.predictions > 0) {
    return Unsupported("multi-token prediction where the head reads some positions only",
                       "Leave `mtp_layers` or `predictions` out.");
  }
  if (config.post_norm && (config.parallel_residual || config.branch_norm)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model cannot have both `post_norm` and `",
                     config.branch_norm ? "branch_norm" : "parallel_residual", "`."));
  }
  return config;
}

}  // namespace plancast
