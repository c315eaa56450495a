#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "graph/transformer/transformer_config.h"
#include "proto/json.h"
#include "proto/transformer.pb.h"

namespace plancast {
namespace {

template <typename Enum, size_t n>
absl::StatusOr<Enum> Find(const EnumNames<Enum, n>& names, const std::string& name,
                          absl::string_view field) {
  if (name.empty()) return static_cast<Enum>(0);
  if (const auto found = names.Find(name)) return *found;
  return absl::InvalidArgumentError(
      absl::StrCat("no ", field, " `", name, "`.", Offer(name, names)));
}

void ReadLatent(const proto::TransformerConfig& p, LatentAttention* latent) {
  latent->q_rank = p.q_lora_rank();
  latent->kv_rank = p.kv_lora_rank();
  latent->own_dim = p.qk_nope_head_dim();
  latent->rotated_dim = p.qk_rope_head_dim();
  latent->value_dim = p.v_head_dim();
}

void WriteLatent(const LatentAttention& latent, proto::TransformerConfig* p) {
  p->set_q_lora_rank(latent.q_rank);
  p->set_kv_lora_rank(latent.kv_rank);
  p->set_qk_nope_head_dim(latent.own_dim);
  p->set_qk_rope_head_dim(latent.rotated_dim);
  p->set_v_head_dim(latent.value_dim);
}

absl::Status ReadExperts(const proto::TransformerConfig& p, ExpertsConfig* experts) {
  experts->count = p.experts();
  experts->topk = p.topk();
  experts->ffn = p.moe_ffn();
  experts->shared = p.shared_experts();
  experts->shared_gate = p.shared_expert_gate();
  experts->dense_layers = p.dense_layers();
  experts->every = p.moe_every() == 0 ? 1 : p.moe_every();
  ASSIGN_OR_RETURN(experts->score, Find(kRouterScoreNames, p.router_score(), "router_score"));
  experts->normalized = !p.has_router_normalized() || p.router_normalized();
  experts->router_bias = p.router_bias();
  experts->groups = p.expert_groups();
  experts->groups_per_token = p.groups_per_token();
  experts->capacity_factor = p.capacity_factor() == 0 ? 1 : p.capacity_factor();
  return absl::OkStatus();
}

void WriteExperts(const ExpertsConfig& experts, proto::TransformerConfig* p) {
  if (!experts.present()) return;
  p->set_experts(experts.count);
  p->set_topk(experts.topk);
  p->set_moe_ffn(experts.ffn);
  p->set_shared_experts(experts.shared);
  p->set_shared_expert_gate(experts.shared_gate);
  p->set_dense_layers(experts.dense_layers);
  p->set_moe_every(experts.every);
  p->set_router_score(std::string(kRouterScoreNames[experts.score]));
  p->set_router_normalized(experts.normalized);
  p->set_router_bias(experts.router_bias);
  p->set_expert_groups(experts.groups);
  p->set_groups_per_token(experts.groups_per_token);
  p->set_capacity_factor(experts.capacity_factor);
}

}  // namespace

absl::StatusOr<TransformerConfig> ParseTransformerConfig(absl::string_view json,
                                                         absl::string_view what) {
  ASSIGN_OR_RETURN(const auto p, ParseJson<proto::TransformerConfig>(json, what));
  TransformerConfig c;
  c.name = p.name();
  c.layers = p.layers();
  c.hidden = p.hidden();
  c.heads = p.heads();
  c.kv_heads = p.kv_heads();
  c.head_dim = p.head_dim();
  c.ffn = p.ffn();
  c.vocab = p.vocab();
  c.seq = p.seq();
  c.documents.assign(p.documents().begin(), p.documents().end());
  ASSIGN_OR_RETURN(c.mlp, Find(kMlpNames, p.mlp(), "mlp"), _ << what);
  ASSIGN_OR_RETURN(c.norm, Find(kNormNames, p.norm(), "norm"), _ << what);
  ASSIGN_OR_RETURN(c.position, Find(kPositionNames, p.position(), "position"), _ << what);
  c.max_positions = p.max_positions();
  c.rotary_scaled = p.rotary_scaled();
  c.tied_embeddings = p.tied_embeddings();
  const bool biases = c.norm == Norm::kLayerNorm && !c.gated();
  c.qkv_bias = p.has_qkv_bias() ? p.qkv_bias() : biases;
  c.out_bias = p.has_out_bias() ? p.out_bias() : biases;
  c.mlp_bias = p.has_mlp_bias() ? p.mlp_bias() : biases;
  c.head_bias = p.head_bias();
  c.parallel_residual = p.parallel_residual();
  c.qk_norm = p.qk_norm();
  c.bidirectional = p.bidirectional();
  c.post_norm = p.post_norm();
  c.token_types = p.token_types();
  c.embedding_norm = p.embedding_norm();
  c.head_transform = p.head_transform();
  c.sentence_head = p.sentence_head();
  c.window = p.window();
  c.window_pattern = p.window_pattern();
  c.attention_sinks = p.attention_sinks();
  c.attention_softcap = p.attention_softcap();
  c.head_softcap = p.head_softcap();
  c.branch_norm = p.branch_norm();
  c.embedding_scale = p.embedding_scale();
  c.mtp_layers = p.mtp_layers();
  c.predictions = p.predictions();
  ReadLatent(p, &c.latent);
  RETURN_IF_ERROR(ReadExperts(p, &c.experts)) << what;
  ASSIGN_OR_RETURN(c, Completed(c), _ << what);
  return c;
}

std::string TransformerConfigJson(const TransformerConfig& c) {
  proto::TransformerConfig p;
  p.set_name(c.name);
  p.set_layers(c.layers);
  p.set_hidden(c.hidden);
  p.set_heads(c.heads);
  p.set_kv_heads(c.kv_heads);
  p.set_head_dim(c.head_dim);
  p.set_ffn(c.ffn);
  p.set_vocab(c.vocab);
  p.set_seq(c.seq);
  p.mutable_documents()->Add(c.documents.begin(), c.documents.end());
  p.set_mlp(std::string(kMlpNames[c.mlp]));
  p.set_norm(std::string(kNormNames[c.norm]));
  p.set_position(std::string(kPositionNames[c.position]));
  p.set_max_positions(c.max_positions);
  p.set_rotary_scaled(c.rotary_scaled);
  p.set_tied_embeddings(c.tied_embeddings);
  p.set_qkv_bias(c.qkv_bias);
  p.set_out_bias(c.out_bias);
  p.set_mlp_bias(c.mlp_bias);
  p.set_head_bias(c.head_bias);
  p.set_parallel_residual(c.parallel_residual);
  p.set_qk_norm(c.qk_norm);
  p.set_bidirectional(c.bidirectional);
  p.set_post_norm(c.post_norm);
  p.set_token_types(c.token_types);
  p.set_embedding_norm(c.embedding_norm);
  p.set_head_transform(c.head_transform);
  p.set_sentence_head(c.sentence_head);
  p.set_window(c.window);
  p.set_window_pattern(c.window_pattern);
  p.set_attention_sinks(c.attention_sinks);
  p.set_attention_softcap(c.attention_softcap);
  p.set_head_softcap(c.head_softcap);
  p.set_branch_norm(c.branch_norm);
  p.set_embedding_scale(c.embedding_scale);
  p.set_mtp_layers(c.mtp_layers);
  p.set_predictions(c.predictions);
  WriteLatent(c.latent, &p);
  WriteExperts(c.experts, &p);
  absl::StatusOr<std::string> json = ToJson(p);
  PLANCAST_CHECK_OK(json.status());  // its message has no message of its own type
  return *std::move(json);
}

}  // namespace plancast
