#include <gtest/gtest.h>

#include "graph/transformer/transformer.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

TransformerConfig Shape(int64_t layers, int64_t hidden, int64_t heads, int64_t ffn, int64_t vocab,
                        int64_t seq) {
  TransformerConfig config;
  config.name = "model";
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.ffn = ffn;
  config.vocab = vocab;
  config.seq = seq;
  return config;
}

TransformerConfig Gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t vocab, int64_t seq) {
  TransformerConfig config = Shape(layers, hidden, heads, 4 * hidden, vocab, seq);
  config.qkv_bias = config.out_bias = config.mlp_bias = config.tied_embeddings = true;
  return config;
}

TransformerConfig Llama(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads,
                        int64_t ffn, int64_t vocab) {
  TransformerConfig config = Shape(layers, hidden, heads, ffn, vocab, 4096);
  config.kv_heads = kv_heads;
  config.mlp = Mlp::kSwiglu;
  config.norm = Norm::kRmsNorm;
  config.position = Position::kRope;
  return config;
}

int64_t Count(const TransformerConfig& config) {
  const absl::StatusOr<ModelGraph> graph = BuildTransformer(config);
  return graph.ok() ? graph->ParameterCount() : -1;
}

// Published counts, exact.
TEST(ParameterCountTest, LlamaFamily) {
  EXPECT_EQ(Count(Llama(32, 4096, 32, 8, 14336, 128256)), 8'030'261'248);       // Llama 3 8B
  EXPECT_EQ(Count(Llama(80, 8192, 64, 8, 28672, 128256)), 70'553'706'496);      // Llama 3 70B
  EXPECT_EQ(Count(Llama(126, 16384, 128, 8, 53248, 128256)), 405'853'388'800);  // Llama 3.1 405B
  EXPECT_EQ(Count(Llama(32, 4096, 32, 32, 11008, 32000)), 6'738'415'616);       // Llama 2 7B
  EXPECT_EQ(Count(Llama(40, 5120, 40, 40, 13824, 32000)), 13'015'864'320);      // Llama 2 13B
  EXPECT_EQ(Count(Llama(80, 8192, 64, 8, 28672, 32000)), 68'976'648'192);       // Llama 2 70B
  EXPECT_EQ(Count(Llama(32, 4096, 32, 8, 14336, 32000)), 7'241'732'096);        // Mistral 7B
}

TEST(ParameterCountTest, Qwen) {
  TransformerConfig qwen2 = Llama(28, 3584, 28, 4, 18944, 152064);
  qwen2.qkv_bias = true;
  EXPECT_EQ(Count(qwen2), 7'615'616'512);
  TransformerConfig qwen3 = Llama(36, 4096, 32, 8, 12288, 151936);
  qwen3.head_dim = 128;
  qwen3.qk_norm = true;
  EXPECT_EQ(Count(qwen3), 8'190'735'360);
}

// Gemma 2 (arXiv:2408.00118, table 2: embeddings and the rest).
TEST(ParameterCountTest, Gemma2) {
  TransformerConfig gemma = Llama(26, 2304, 8, 4, 9216, 256000);
  gemma.head_dim = 256;
  gemma.mlp = Mlp::kGeglu;
  gemma.branch_norm = gemma.tied_embeddings = true;
  gemma.window = 4096;
  gemma.window_pattern = "wf";
  gemma.seq = 8192;
  EXPECT_EQ(Count(gemma), int64_t{589'824'000} + 2'024'517'888);
}

// Sizes of the released checkpoints.
TEST(ParameterCountTest, MixturesOfExperts) {
  TransformerConfig mixtral = Llama(32, 4096, 32, 8, 14336, 32000);  // 8x7B
  mixtral.experts.count = 8;
  mixtral.experts.topk = 2;
  EXPECT_EQ(Count(mixtral), 46'702'792'704);
  // Of 8 experts of 3 x 4096 x 14336 a token meets 2, in each of 32 layers.
  const int64_t expert = int64_t{3} * 4096 * 14336;
  EXPECT_EQ(BuildTransformer(mixtral)->ActiveParameterCount(), 46'702'792'704 - 32 * 6 * expert);

  TransformerConfig qwen3 = Llama(48, 2048, 32, 4, 6144, 151936);  // Qwen3 30B-A3B
  qwen3.head_dim = 128;
  qwen3.qk_norm = true;
  qwen3.experts.count = 128;
  qwen3.experts.topk = 8;
  qwen3.experts.ffn = 768;
  EXPECT_EQ(Count(qwen3), 30'532'122'624);

  TransformerConfig oss = Llama(24, 2880, 64, 8, 2880, 201088);  // gpt-oss 20B
  oss.head_dim = 64;
  oss.mlp = Mlp::kSwigluClamped;
  oss.qkv_bias = oss.out_bias = oss.mlp_bias = oss.attention_sinks = true;
  oss.window = 128;
  oss.window_pattern = "wf";
  oss.experts.count = 32;
  oss.experts.topk = 4;
  oss.experts.router_bias = true;
  EXPECT_EQ(Count(oss), 20'914'757'184);
}

// DeepSeek-V3 without the multi-token-prediction module, with the biases of its
// routers (arXiv:2412.19437, section 2.1.2).
TEST(ParameterCountTest, DeepSeekV3) {
  TransformerConfig v3 = Llama(61, 7168, 128, 128, 18432, 129280);
  v3.latent = {1536, 512, 128, 64, 128};
  v3.experts.count = 256;
  v3.experts.topk = 8;
  v3.experts.ffn = 2048;
  v3.experts.shared = 1;
  v3.experts.dense_layers = 3;
  v3.experts.score = RouterScore::kSigmoid;
  v3.experts.router_bias = true;
  EXPECT_EQ(Count(v3), 671'026'419'200);
  // README_WEIGHTS.md of the released model: 11.5B parameters of its own.
  v3.mtp_layers = 1;
  EXPECT_EQ(Count(v3) - 671'026'419'200,
            7168 * 256 + 256 + 257 * int64_t{3 * 7168 * 2048}            // router, experts
                + 7168 * 1536 + 1536 + int64_t{1536 * 128 * 192}         // queries
                + 7168 * 576 + 512 + 512 * 128 * 256 + 128 * 128 * 7168  // keys, values, result
                + 2 * 7168 + 2 * int64_t{7168 * 7168} + 3 * 7168);       // norms, eh_proj
}

TEST(ParameterCountTest, Gpt2OptNeoxBert) {
  EXPECT_EQ(Count(Gpt(12, 768, 12, 50257, 1024)), 124'439'808);  // GPT-2

  TransformerConfig opt = Gpt(32, 4096, 32, 50272, 2048);  // OPT 6.7B
  opt.mlp = Mlp::kRelu;
  opt.max_positions = 2050;
  EXPECT_EQ(Count(opt), 6'658'473'984);

  TransformerConfig neox = Gpt(44, 6144, 64, 50432, 2048);  // GPT-NeoX 20B
  neox.position = Position::kRope;
  neox.tied_embeddings = false;
  neox.parallel_residual = true;
  EXPECT_EQ(Count(neox), 20'554'567'680);

  TransformerConfig bert = Gpt(24, 1024, 16, 30522, 512);  // BERT large, masked-word head
  bert.bidirectional = bert.post_norm = bert.embedding_norm = true;
  bert.head_transform = bert.head_bias = true;
  bert.token_types = 2;
  EXPECT_EQ(Count(bert), 335'174'458);
  bert.sentence_head = true;  // with pooler and next-sentence head
  EXPECT_EQ(Count(bert), 335'174'458 + 1024 * 1024 + 1024 + 2 * 1024 + 2);
}

// "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", equation 2 and table 1 (heads, hidden, layers, billions). The
// equation leaves out the last layer norm (2 h).
TEST(ParameterCountTest, MegatronSizesFollowThePaper) {
  struct Row {
    double billions;
    int64_t heads, hidden, layers;
  };
  for (const Row& row : {Row{1.7, 24, 2304, 24}, Row{3.6, 32, 3072, 30}, Row{7.5, 32, 4096, 36},
                         Row{18.4, 48, 6144, 40}, Row{39.1, 64, 8192, 48}, Row{76.1, 80, 10240, 60},
                         Row{145.6, 96, 12288, 80}, Row{310.1, 128, 16384, 96},
                         Row{529.6, 128, 20480, 105}, Row{1008.0, 160, 25600, 128}}) {
    const int64_t l = row.layers, h = row.hidden, V = 51200, s = 2048;
    const int64_t count = Count(Gpt(l, h, row.heads, V, s));
    // 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), without the fractions.
    EXPECT_EQ(count, 12 * l * h * h + 13 * l * h + (V + s) * h + 2 * h);
    EXPECT_NEAR(static_cast<double>(count) / 1e9, row.billions, 0.06) << h;
  }
}

TEST(ParameterCountTest, Gpt3Has175Billion) {
  EXPECT_EQ(Count(Gpt(96, 12288, 96, 50257, 2048)), 174'604'259'328);
}

}  // namespace
}  // namespace plancast
