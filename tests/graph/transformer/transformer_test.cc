#include "graph/transformer/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TransformerConfig Gpt() {
  TransformerConfig config;
  config.name = "gpt";
  config.layers = 3;
  config.hidden = 64;
  config.heads = 4;
  config.ffn = 256;
  config.vocab = 1000;
  config.seq = 32;
  config.tied_embeddings = true;
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
  return config;
}

TransformerConfig Llama() {
  TransformerConfig config = Gpt();
  config.name = "llama";
  config.kv_heads = 2;
  config.mlp = Mlp::kSwiglu;
  config.norm = Norm::kRmsNorm;
  config.position = Position::kRope;
  config.tied_embeddings = config.qkv_bias = config.out_bias = config.mlp_bias = false;
  return config;
}

// "attn.norm:layer_norm attn.qkv:qkv_linear ..." of segment `index`.
std::string Ops(const ModelGraph& graph, int index) {
  std::vector<std::string> ops;
  for (const OpNode& op : graph.bodies[graph.segments[index].body].ops) {
    ops.push_back(absl::StrCat(op.name, ":", op.rule->name()));
  }
  return absl::StrJoin(ops, " ");
}

const OpNode& FindOp(const ModelGraph& graph, int segment, const std::string& name) {
  for (const OpNode& op : graph.bodies[graph.segments[segment].body].ops) {
    if (op.name == name) return op;
  }
  ADD_FAILURE() << "no op " << name;
  return graph.bodies[0].ops[0];
}

TEST(TransformerTest, GptWithUnfusedAttentionAndDropout) {
  TransformerChoices choices;
  choices.flash_attention = false;
  choices.dropout = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Gpt(), choices));
  EXPECT_EQ(Ops(graph, 0),
            "tokens:embedding positions:embedding add_positions:residual_add dropout:dropout");
  EXPECT_EQ(Ops(graph, 1),
            "attn.norm:layer_norm attn.qkv:qkv_linear_bias attn.scores:scores "
            "attn.softmax:softmax_causal attn.dropout:attention_dropout attn.context:context "
            "attn.merge_heads:merge_heads attn.proj:out_linear attn.proj_bias:bias_add "
            "attn.proj_dropout:dropout "
            "attn.residual:residual_add mlp.norm:layer_norm mlp.fc1:linear mlp.fc1_bias:bias_add "
            "mlp.act:gelu_tanh mlp.fc2:linear mlp.fc2_bias:bias_add mlp.fc2_dropout:dropout "
            "mlp.residual:residual_add");
  EXPECT_EQ(Ops(graph, 2), "norm:layer_norm logits:linear loss:cross_entropy");
  EXPECT_EQ(graph.segments[1].repeat, 3);
}

TEST(TransformerTest, LlamaHasNeitherBiasNorDropoutOps) {
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Llama()));
  EXPECT_EQ(Ops(graph, 0), "tokens:embedding");
  EXPECT_EQ(Ops(graph, 1),
            "attn.norm:rms_norm attn.qkv:qkv_linear attn.rotary_q:rotary attn.rotary_k:rotary_kv "
            "attn.core:attention attn.proj:out_linear attn.residual:residual_add "
            "mlp.norm:rms_norm mlp.fc1:gated_linear mlp.act:swiglu mlp.fc2:linear "
            "mlp.residual:residual_add");
  EXPECT_TRUE(graph.tied.empty());
}

TEST(TransformerTest, Qwen3NormalisesQueriesAndKeysBeforeRotation) {
  TransformerConfig config = Llama();
  config.qk_norm = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 1),
              HasSubstr("attn.q_norm:head_rms_norm attn.k_norm:head_rms_norm_kv attn.rotary_q"));
}

TEST(TransformerTest, ParallelResidualJoinsBranchesBeforeTheirBiases) {
  TransformerConfig config = Gpt();
  config.position = Position::kRope;
  config.parallel_residual = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 1), HasSubstr("mlp.fc2:linear mlp.join:residual_add "
                                       "attn.proj_bias:bias_add mlp.fc2_bias:bias_add "
                                       "mlp.residual:residual_add"));
}

TEST(TransformerTest, BertIsBidirectionalWithNormsAfterResiduals) {
  TransformerConfig config = Gpt();
  config.bidirectional = config.post_norm = config.embedding_norm = true;
  config.head_transform = config.head_bias = true;
  config.token_types = 2;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_EQ(Ops(graph, 0),
            "tokens:embedding positions:embedding add_positions:residual_add types:embedding "
            "add_types:residual_add norm:layer_norm");
  EXPECT_THAT(Ops(graph, 1), HasSubstr("attn.core:attention_full"));
  EXPECT_THAT(Ops(graph, 1), HasSubstr("attn.residual:residual_add attn.norm:layer_norm mlp.fc1"));
  EXPECT_EQ(Ops(graph, 2),
            "transform:linear_bias transform_act:gelu_tanh transform_norm:layer_norm "
            "logits:linear_bias loss:cross_entropy");
}

TransformerConfig Gemma() {
  TransformerConfig config = Llama();
  config.name = "gemma";
  config.layers = 5;
  config.mlp = Mlp::kGeglu;
  config.head_dim = 32;
  config.branch_norm = config.embedding_scale = config.tied_embeddings = true;
  config.attention_softcap = config.head_softcap = true;
  config.window = 8;
  config.window_pattern = "wf";
  return config;
}

TEST(TransformerTest, LayersThatDifferAreRunsOfOneList) {
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Gemma()));
  ASSERT_EQ(graph.segments.size(), 7u);
  EXPECT_EQ(graph.bodies.size(), 4u);  // both ends, and two kinds of layers
  for (int s = 1; s <= 5; ++s) {
    EXPECT_EQ(graph.segments[s].path, "layers");
    EXPECT_EQ(graph.segments[s].body, s % 2 == 1 ? 1 : 2);
    EXPECT_EQ(graph.PathOf(graph.segments[s]), "layers.*");
  }
  EXPECT_EQ(graph.LayerCount(), 5);
  EXPECT_THAT(Ops(graph, 1), HasSubstr("attn.core:attention_window_softcap"));
  EXPECT_THAT(Ops(graph, 2), HasSubstr("attn.core:attention_softcap"));
  EXPECT_EQ(FindOp(graph, 1, "attn.core").rule->FindFactor("w").ok(), true);
}

TEST(TransformerTest, GemmaHasFourNormsALayer) {
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Gemma()));
  EXPECT_EQ(Ops(graph, 0), "tokens:embedding scale:scale");
  EXPECT_THAT(Ops(graph, 1), HasSubstr("attn.proj:out_linear attn.out_norm:rms_norm "
                                       "attn.residual:residual_add mlp.norm:rms_norm"));
  EXPECT_THAT(Ops(graph, 1),
              HasSubstr("mlp.fc2:linear mlp.out_norm:rms_norm mlp.residual:residual_add"));
  EXPECT_EQ(Ops(graph, 6), "norm:rms_norm logits:linear softcap:softcap loss:cross_entropy");
}

TEST(TransformerTest, AWindowThatHoldsTheSequenceIsNone) {
  TransformerConfig config = Gemma();
  config.window = config.seq;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_EQ(graph.segments.size(), 3u);
  EXPECT_THAT(graph.FindDim("window"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("window")));
}

TEST(TransformerTest, SinksAreParametersOfEveryHead) {
  TransformerConfig config = Llama();
  const int64_t without = BuildTransformer(config)->ParameterCount();
  config.attention_sinks = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 1), HasSubstr("attn.core:attention_sinks"));
  EXPECT_EQ(graph.ParameterCount() - without, config.layers * config.heads);
  TransformerChoices unfused;
  unfused.flash_attention = false;
  EXPECT_EQ(BuildTransformer(config, unfused)->ParameterCount(), graph.ParameterCount());
}

TEST(TransformerTest, ScaledRotationsAreOpsOfTheirOwn) {
  TransformerConfig config = Llama();
  config.rotary_scaled = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 1),
              HasSubstr("attn.rotary_q:rotary_scaled attn.rotary_k:rotary_scaled_kv attn.core"));
  config.position = Position::kNone;
  EXPECT_THAT(BuildTransformer(config).status().message(), HasSubstr("`rotary_scaled` is of"));
}

TEST(TransformerTest, LatentAttentionDrawsItsProjections) {
  TransformerConfig config = Llama();
  config.kv_heads = 0;
  config.latent = {48, 32, 16, 8, 24};
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 1),
              HasSubstr("attn.norm:rms_norm attn.q_down:linear attn.q_down_norm:rms_norm "
                        "attn.q_up:latent_query attn.kv_down:latent_down "
                        "attn.kv_down_norm:rms_norm attn.kv_up:latent_key_value "
                        "attn.rotary_q:rotary attn.rotary_k:rotary_shared "
                        "attn.core:attention_latent attn.proj:out_linear"));
  TransformerChoices unfused;
  unfused.flash_attention = false;
  ASSERT_OK_AND_ASSIGN(const ModelGraph eager, BuildTransformer(config, unfused));
  EXPECT_THAT(Ops(eager, 1), HasSubstr("attn.scores:scores_latent attn.softmax:softmax_causal "
                                       "attn.context:context attn.merge_heads:merge_heads"));
  config.latent.q_rank = 0;
  ASSERT_OK_AND_ASSIGN(const ModelGraph lite, BuildTransformer(config));
  EXPECT_THAT(Ops(lite, 1), HasSubstr("attn.norm:rms_norm attn.q_up:latent_query"));
}

TransformerConfig Experts() {
  TransformerConfig config = Llama();
  config.experts.count = 8;
  config.experts.topk = 2;
  config.experts.ffn = 96;
  return config;
}

TEST(TransformerTest, ExpertsTakeThePlaceOfTheFeedForward) {
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Experts()));
  EXPECT_THAT(Ops(graph, 1),
              HasSubstr("mlp.norm:rms_norm mlp.router:router mlp.scores:router_softmax "
                        "mlp.gate:moe_gate_normalized mlp.dispatch:moe_dispatch "
                        "mlp.experts.fc1:expert_gated_linear mlp.experts.act:expert_swiglu "
                        "mlp.experts.fc2:expert_linear mlp.combine:moe_combine "
                        "mlp.residual:residual_add"));
  EXPECT_EQ(graph.dims[*graph.FindDim("slots")].size, 32 * 2 / 8);
  EXPECT_FALSE(graph.FindDim("ffn").ok());  // no layer is dense
}

TEST(TransformerTest, SlotsHoldTheCapacity) {
  TransformerConfig config = Experts();
  config.experts.capacity_factor = 1.3;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_EQ(graph.dims[*graph.FindDim("slots")].size, 11);  // 10.4
}

TEST(TransformerTest, SharedExpertsJoinTheRoutedOnes) {
  TransformerConfig config = Experts();
  config.experts.shared = 3;
  config.experts.shared_gate = true;
  config.experts.score = RouterScore::kSigmoid;
  config.experts.normalized = false;
  config.experts.dense_layers = 1;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 1), HasSubstr("mlp.norm:rms_norm mlp.fc1:gated_linear"));
  EXPECT_THAT(Ops(graph, 2), HasSubstr("mlp.scores:router_sigmoid mlp.gate:moe_gate "));
  EXPECT_THAT(Ops(graph, 2),
              HasSubstr("mlp.combine:moe_combine mlp.shared.fc1:gated_linear "
                        "mlp.shared.act:swiglu mlp.shared.fc2:linear "
                        "mlp.shared.gate:shared_expert_gate "
                        "mlp.shared.scale:shared_expert_scale mlp.shared.join:residual_add"));
  EXPECT_EQ(graph.dims[*graph.FindDim("shared_ffn")].size, 3 * 96);
  EXPECT_EQ(graph.LayerCount(), 3);
  config.parallel_residual = true;
  EXPECT_OK(BuildTransformer(config).status());
}

TEST(TransformerTest, BiasesOfExpertsAreAddedBeforeTheirResultsMeet) {
  TransformerConfig config = Experts();
  config.mlp_bias = config.experts.router_bias = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 1),
              HasSubstr("mlp.router:router_bias mlp.scores:router_softmax "
                        "mlp.gate:moe_gate_normalized mlp.dispatch:moe_dispatch "
                        "mlp.experts.fc1:expert_gated_linear_bias mlp.experts.act:expert_swiglu "
                        "mlp.experts.fc2:expert_linear mlp.experts.fc2_bias:expert_bias_add "
                        "mlp.combine:moe_combine mlp.residual:residual_add"));
  config.mlp = Mlp::kGelu;
  ASSERT_OK_AND_ASSIGN(const ModelGraph ungated, BuildTransformer(config));
  EXPECT_THAT(Ops(ungated, 1),
              HasSubstr("mlp.experts.fc1:expert_linear_bias mlp.experts.act:expert_gelu "
                        "mlp.experts.fc2:expert_linear mlp.experts.fc2_bias:expert_bias_add"));
}

TEST(TransformerTest, WeightsOfTokensMayGoToTheExperts) {
  TransformerConfig config = Experts();
  config.mlp_bias = true;
  TransformerChoices choices;
  choices.experts_weigh_activations = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config, choices));
  EXPECT_THAT(Ops(graph, 1),
              HasSubstr("mlp.dispatch:moe_dispatch mlp.weights:moe_dispatch_weights "
                        "mlp.experts.fc1:expert_gated_linear_bias mlp.experts.act:expert_swiglu "
                        "mlp.experts.weigh:expert_weigh mlp.experts.fc2:expert_linear "
                        "mlp.experts.fc2_bias:expert_bias_add_weighted "
                        "mlp.combine:moe_gather mlp.residual:residual_add"));
  choices.experts_sorted_over = 8;  // one expert a rank
  ASSERT_OK_AND_ASSIGN(const ModelGraph one, BuildTransformer(config, choices));
  EXPECT_EQ(Ops(one, 1), Ops(graph, 1));
  choices.experts_sorted_over = 4;
  ASSERT_OK_AND_ASSIGN(const ModelGraph sorted, BuildTransformer(config, choices));
  EXPECT_THAT(Ops(sorted, 1), HasSubstr("mlp.experts.sort:expert_sort mlp.experts.fc1"));
  EXPECT_THAT(Ops(sorted, 1), HasSubstr("mlp.experts.unsort:expert_sort mlp.combine:moe_gather"));
}

TEST(TransformerTest, SharedExpertsMayRunBesideTheExchange) {
  TransformerConfig config = Experts();
  config.experts.shared = 1;
  TransformerChoices choices;
  ASSERT_OK_AND_ASSIGN(const ModelGraph behind, BuildTransformer(config, choices));
  EXPECT_THAT(Ops(behind, 1), HasSubstr("mlp.combine:moe_combine mlp.shared.fc1:gated_linear "
                                        "mlp.shared.act:swiglu mlp.shared.fc2:linear "
                                        "mlp.shared.join:residual_add"));
  choices.shared_experts_beside = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph beside, BuildTransformer(config, choices));
  EXPECT_THAT(Ops(beside, 1),
              HasSubstr("mlp.dispatch:moe_dispatch mlp.shared.fc1:gated_linear "
                        "mlp.shared.act:swiglu mlp.experts.fc1:expert_gated_linear "
                        "mlp.experts.act:expert_swiglu mlp.experts.fc2:expert_linear "
                        "mlp.shared.fc2:linear mlp.combine:moe_combine "
                        "mlp.shared.join:residual_add"));
}

TEST(TransformerTest, ASentenceHeadReadsTheFirstToken) {
  TransformerConfig config = Gpt();
  config.bidirectional = config.post_norm = config.sentence_head = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  EXPECT_THAT(Ops(graph, 2),
              HasSubstr("loss:cross_entropy first_token:select "
                        "pooler:linear_bias_nd pooler_act:tanh_nd "
                        "sentence:linear_bias_nd sentence_loss:classification_loss"));
}

TEST(TransformerTest, SmallOpsCarryFusionLabels) {
  TransformerChoices choices;
  choices.dropout = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Gpt(), choices));
  for (const char* op : {"attn.proj_bias", "attn.proj_dropout", "attn.residual", "mlp.fc2_bias",
                         "mlp.fc2_dropout", "mlp.residual"}) {
    EXPECT_EQ(FindOp(graph, 1, op).fusion, "bias_dropout_add") << op;
  }
  for (const char* op : {"mlp.fc1_bias", "mlp.act"}) {
    EXPECT_EQ(FindOp(graph, 1, op).fusion, "bias_gelu") << op;
  }
  for (const char* op : {"attn.norm", "attn.qkv", "attn.core", "mlp.fc1", "mlp.fc2"}) {
    EXPECT_EQ(FindOp(graph, 1, op).fusion, "") << op;
  }
}

TEST(TransformerTest, CoreAttentionIsOneRecomputeGroup) {
  TransformerChoices choices;
  choices.flash_attention = false;
  choices.dropout = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Gpt(), choices));
  for (const OpNode& op : graph.bodies[1].ops) {
    const bool core = op.name == "attn.scores" || op.name == "attn.softmax" ||
                      op.name == "attn.dropout" || op.name == "attn.context" ||
                      op.name == "attn.merge_heads";
    EXPECT_EQ(op.recompute_group, core ? "core_attention" : "") << op.name;
  }
}

TEST(TransformerTest, KeyPositionsAreADimOfTheirOwn) {
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Llama()));
  const OpNode& core = FindOp(graph, 1, "attn.core");
  ASSERT_OK_AND_ASSIGN(const int query, core.rule->FindFactor("s"));
  ASSERT_OK_AND_ASSIGN(const int key, core.rule->FindFactor("t"));
  EXPECT_EQ(graph.dims[core.factor_dims[query]].name, "seq");
  EXPECT_EQ(graph.dims[core.factor_dims[key]].name, "kv_seq");
  EXPECT_EQ(graph.dims[*graph.FindDim("kv_seq")].size, 32);
}

TEST(TransformerTest, PadsTheVocabularyButKeepsTheFact) {
  TransformerChoices choices;
  choices.vocab_multiple = 512;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(Llama(), choices));
  EXPECT_EQ(graph.dims[*graph.FindDim("vocab")].size, 1024);
  EXPECT_EQ(graph.vocab, 1000);
}

TEST(TransformerTest, TiedEmbeddingsCountOnce) {
  TransformerConfig config = Gpt();
  ASSERT_OK_AND_ASSIGN(const ModelGraph tied, BuildTransformer(config));
  config.tied_embeddings = false;
  ASSERT_OK_AND_ASSIGN(const ModelGraph untied, BuildTransformer(config));
  ASSERT_EQ(tied.tied.size(), 1u);
  EXPECT_EQ(untied.ParameterCount() - tied.ParameterCount(), 1000 * 64);
}

TEST(TransformerTest, AHeadMayReadSomePositions) {
  TransformerConfig config = Gpt();
  config.head_transform = true;
  ASSERT_OK_AND_ASSIGN(const ModelGraph all, BuildTransformer(config));
  config.predictions = 5;
  ASSERT_OK_AND_ASSIGN(const ModelGraph some, BuildTransformer(config));
  EXPECT_EQ(Ops(some, 2),
            "norm:layer_norm select:select_positions transform:linear_bias "
            "transform_act:gelu_tanh transform_norm:layer_norm logits:linear loss:cross_entropy");
  ASSERT_OK_AND_ASSIGN(const int dim, some.FindDim("predictions"));
  for (const char* op : {"transform", "transform_act", "transform_norm", "logits", "loss"}) {
    const std::vector<int>& dims = FindOp(some, 2, op).factor_dims;
    EXPECT_TRUE(std::count(dims.begin(), dims.end(), dim) == 1) << op;
  }
  EXPECT_EQ(some.ParameterCount(), all.ParameterCount());
  config.predictions = 33;
  EXPECT_THAT(BuildTransformer(config).status().message(), HasSubstr("from 1 to 32"));
}

TEST(TransformerTest, MultiTokenPredictionIsALayerBehindTheOthersAndASecondLoss) {
  TransformerConfig config = Llama();
  config.mtp_layers = 2;
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  ASSERT_EQ(graph.segments.size(), 5u);  // embedding, layers, mtp, mtp, head
  EXPECT_EQ(graph.LayerCount(), config.layers + 2);
  EXPECT_EQ(ModelGraph::PathOf(graph.segments[2]), "mtp.*");
  for (const int depth : {1, 2}) {
    EXPECT_EQ(Ops(graph, 1 + depth),
              "tokens:embedding enorm:rms_norm hnorm:rms_norm eh_join:concat_last2 "
              "eh_proj:linear attn.norm:rms_norm attn.qkv:qkv_linear attn.rotary_q:rotary "
              "attn.rotary_k:rotary_kv attn.core:attention attn.proj:out_linear "
              "attn.residual:residual_add mlp.norm:rms_norm mlp.fc1:gated_linear mlp.act:swiglu "
              "mlp.fc2:linear mlp.residual:residual_add final_norm:rms_norm");
    // It hands on what it takes in.
    const Body& body = graph.bodies[graph.segments[1 + depth].body];
    EXPECT_EQ(body.in_ports.size(), static_cast<size_t>(depth));
    ASSERT_EQ(body.out_ports.size(), static_cast<size_t>(depth) + 1);
    EXPECT_TRUE(std::equal(body.in_ports.begin(), body.in_ports.end(), body.out_ports.begin()));
  }
  EXPECT_EQ(Ops(graph, 4),
            "norm:rms_norm logits:linear loss:cross_entropy mtp_1_logits:linear "
            "mtp_1_loss:cross_entropy mtp_2_logits:linear mtp_2_loss:cross_entropy");
  EXPECT_EQ(FindOp(graph, 4, "mtp_1_logits").inputs[1], FindOp(graph, 4, "logits").inputs[1]);
  // Both read the embedding of the model.
  ASSERT_EQ(graph.tied.size(), 2u);
  config.mtp_layers = 0;
  ASSERT_OK_AND_ASSIGN(const ModelGraph without, BuildTransformer(config));
  config.layers += 1;
  ASSERT_OK_AND_ASSIGN(const ModelGraph longer, BuildTransformer(config));
  const int64_t layer = longer.ParameterCount() - without.ParameterCount();
  EXPECT_EQ(graph.ParameterCount() - without.ParameterCount(), 2 * (layer + 2 * 64 * 64 + 3 * 64));
}

TEST(TransformerTest, AnActivationOfOneLayerMatchesKorthikantis34) {
  // "Reducing Activation Recomputation in Large Transformer Models", section
  // 4.1: 34 s b h + 5 a s^2 b bytes a layer. Here: what the ops of the paper
  // store, by the save lists of the rules.
  TransformerChoices choices;
  choices.flash_attention = false;
  choices.dropout = true;
  ASSERT_OK_AND_ASSIGN(ModelGraph graph, BuildTransformer(Gpt(), choices));
  graph = graph.WithBatch(2);
  const Body& body = graph.bodies[1];
  std::vector<bool> saved(body.tensors.size(), false);
  int64_t masks = 0;
  for (const OpNode& op : body.ops) {
    for (int index : op.rule->saves()) {
      const RuleTensor& tensor = op.rule->tensors()[index];
      for (size_t i = 0; i < op.rule->inputs().size(); ++i) {
        if (op.rule->inputs()[i] == index) saved[op.inputs[i]] = true;
      }
      for (size_t i = 0; i < op.rule->outputs().size(); ++i) {
        if (op.rule->outputs()[i] == index) saved[op.outputs[i]] = true;
      }
      if (tensor.role == RuleTensor::Role::kIntermediate && tensor.dtype == DType::kUint8) {
        int64_t elements = 1;
        for (int factor : tensor.factors) elements *= graph.dims[op.factor_dims[factor]].size;
        masks += elements;
      }
    }
  }
  int64_t bytes = masks;
  for (size_t i = 0; i < saved.size(); ++i) {
    if (saved[i] && body.tensors[i].kind == TensorInfo::Kind::kActivation) {
      bytes += 2 * graph.Elements(body.tensors[i]);
    }
  }
  const int64_t s = 32, b = 2, h = 64, a = 4;
  EXPECT_EQ(bytes, 34 * s * b * h + 5 * a * s * s * b);
}

TEST(TransformerTest, RefusesConfigsThatAreWrong) {
  TransformerConfig config = Llama();
  config.kv_heads = 3;
  EXPECT_THAT(BuildTransformer(config), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 HasSubstr("not divisible by the 3 kv_heads")));
}

TEST(TransformerTest, EqualConfigsDrawEqualGraphs) {
  EXPECT_EQ(BuildTransformer(Gpt())->DebugString(), BuildTransformer(Gpt())->DebugString());
}

}  // namespace
}  // namespace plancast
