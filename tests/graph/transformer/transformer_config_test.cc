#include "graph/transformer/transformer_config.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TransformerConfig Small() {
  TransformerConfig config;
  config.name = "small";
  config.layers = 2;
  config.hidden = 64;
  config.heads = 4;
  config.ffn = 256;
  config.vocab = 1000;
  config.seq = 32;
  return config;
}

TEST(TransformerConfigTest, CompletesWhatIsAbsent) {
  ASSERT_OK_AND_ASSIGN(const TransformerConfig config, Completed(Small()));
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.max_positions, 32);
}

TEST(TransformerConfigTest, OnlyLearnedPositionsHaveATable) {
  TransformerConfig config = Small();
  config.position = Position::kRope;
  config.max_positions = 4096;
  EXPECT_EQ(Completed(config)->max_positions, 0);
}

TEST(TransformerConfigTest, TheFeedForwardIsFourTimesAsWide) {
  TransformerConfig config = Small();
  config.ffn = 0;
  EXPECT_EQ(Completed(config)->ffn, 256);
}

TEST(TransformerConfigTest, BiasesAreThoseOfTheFamilyUnlessSaid) {
  const std::string sizes = "\"layers\": 2, \"hidden\": 64, \"heads\": 4, \"vocab\": 9, \"seq\": 8";
  const auto parse = [&](const std::string& more) {
    return *ParseTransformerConfig("{" + sizes + more + "}", "config");
  };
  EXPECT_TRUE(parse("").qkv_bias);
  EXPECT_TRUE(parse("").mlp_bias);
  EXPECT_FALSE(parse(", \"mlp_bias\": false").mlp_bias);
  EXPECT_FALSE(parse(", \"norm\": \"rmsnorm\"").out_bias);
  EXPECT_FALSE(parse(", \"mlp\": \"swiglu\"").qkv_bias);
  EXPECT_TRUE(parse(", \"mlp\": \"swiglu\", \"qkv_bias\": true").qkv_bias);
}

TEST(TransformerConfigTest, NamesWhatIsWrong) {
  const auto code = absl::StatusCode::kInvalidArgument;
  TransformerConfig c = Small();
  c.layers = 0;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("the model has no `layers`")));
  c.layers = -3;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("`layers` is -3; it must be from 1 to")));
  c.layers = int64_t{1} << 60;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("`layers` is 1152921504606846976")));
  c = Small();
  c.kv_heads = 3;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("4 heads are not divisible by the 3")));
  c = Small();
  c.hidden = 65;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("there is no `head_dim`")));
  c = Small();
  c.max_positions = 16;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("Choose seq=16 or less")));
  c = Small();
  c.post_norm = c.parallel_residual = true;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("cannot have both")));
}

TEST(TransformerConfigTest, NamesWhatIsWrongWithAttention) {
  const auto code = absl::StatusCode::kInvalidArgument;
  TransformerConfig c = Small();
  c.window_pattern = "wf";
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("and no `window`")));
  c.window = 8;
  c.window_pattern = "wx";
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("`window_pattern` is `wx`")));
  c.window_pattern = "wf";
  EXPECT_OK(Completed(c));
  c.bidirectional = true;
  EXPECT_THAT(Completed(c), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("bidirectional")));
  c = Small();
  c.latent.own_dim = 16;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("no `kv_lora_rank`")));
  c.latent.kv_rank = 32;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("has no `qk_rope_head_dim`")));
  c.latent.rotated_dim = c.latent.value_dim = 8;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("Say `position: rope`")));
  c.position = Position::kRope;
  ASSERT_OK_AND_ASSIGN(const TransformerConfig latent, Completed(c));
  EXPECT_EQ(latent.head_dim, 24);
  c.kv_heads = 2;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("`kv_heads` is 2")));
  c.latent.own_dim = 1'000'000;  // alone it may be; what is written would not be read again
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("qk_rope_head_dim` is 1000008")));
}

TEST(TransformerConfigTest, NamesWhatIsWrongWithExperts) {
  const auto code = absl::StatusCode::kInvalidArgument;
  TransformerConfig c = Small();
  c.experts.topk = 2;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("and no `experts`")));
  c.experts.shared = -2;  // sizes that sum to nothing
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("and no `experts`")));
  c.experts.shared = 0;
  c.experts.count = 4;
  c.experts.topk = 0;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("has no `topk`")));
  c.experts.topk = 5;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("`topk` is 5; it must be from 1 to 4")));
  c.experts.topk = 2;
  ASSERT_OK_AND_ASSIGN(const TransformerConfig experts, Completed(c));
  EXPECT_EQ(experts.experts.ffn, 256);  // that of a dense layer
  c.experts.shared_gate = true;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("Give `shared_experts`")));
  c.experts.shared_gate = false;
  c.experts.every = 3;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("`moe_every` is 3; it must be from 1 to 2")));
  c.experts.every = 1;
  c.experts.capacity_factor = -1;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("`capacity_factor` is -1")));
}

TEST(TransformerConfigTest, ReadsTheJsonItPrints) {
  TransformerConfig config = Small();
  config.mlp = Mlp::kSwiglu;
  config.norm = Norm::kRmsNorm;
  config.position = Position::kRope;
  config.kv_heads = 2;
  config.qkv_bias = config.qk_norm = config.tied_embeddings = true;
  config = *Completed(config);
  const std::string json = TransformerConfigJson(config);
  ASSERT_OK_AND_ASSIGN(const TransformerConfig read, ParseTransformerConfig(json, "config"));
  EXPECT_EQ(TransformerConfigJson(read), json);
  EXPECT_EQ(read.mlp, Mlp::kSwiglu);
  EXPECT_EQ(read.position, Position::kRope);
  EXPECT_TRUE(read.qk_norm);
}

TEST(TransformerConfigTest, ReadsTheJsonOfExpertsAndLatentAttention) {
  TransformerConfig config = Small();
  config.mlp = Mlp::kSwigluClamped;
  config.norm = Norm::kRmsNorm;
  config.position = Position::kRope;
  config.latent = {48, 32, 16, 8, 24};
  config.experts = {8, 2, 128, 3, true, 1, 2, RouterScore::kSigmoid, false, true, 4, 2, 1.25};
  config.embedding_scale = config.branch_norm = config.head_softcap = config.sentence_head = true;
  config = *Completed(config);
  const std::string json = TransformerConfigJson(config);
  ASSERT_OK_AND_ASSIGN(const TransformerConfig read, ParseTransformerConfig(json, "config"));
  EXPECT_EQ(TransformerConfigJson(read), json);
  EXPECT_EQ(read.experts.groups, 4);
  EXPECT_EQ(read.experts.groups_per_token, 2);
  EXPECT_EQ(read.latent.rotated_dim, 8);
  EXPECT_EQ(read.experts.score, RouterScore::kSigmoid);
  EXPECT_FALSE(read.experts.normalized);
  EXPECT_EQ(read.experts.capacity_factor, 1.25);
}

TEST(TransformerConfigTest, JsonMistakesGetTheNearest) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const auto parse = [](const std::string& json) {
    return ParseTransformerConfig(json, "my.json");
  };
  EXPECT_THAT(parse("{\"layrs\": 2}"), StatusIs(code, HasSubstr("`layers`")));
  EXPECT_THAT(parse("{\"mlp\": \"swigul\"}"),
              StatusIs(code, HasSubstr("my.json: no mlp `swigul`. Did you mean `swiglu`? There are "
                                       "`gelu`, `swiglu`, `relu`, `geglu`, `swiglu_clamped`.")));
  EXPECT_THAT(parse("{\"layers\": \"many\"}"), StatusIs(code, HasSubstr("my.json")));
  EXPECT_THAT(parse("{"), StatusIs(code, HasSubstr("my.json")));
  EXPECT_THAT(parse("{}"), StatusIs(code, HasSubstr("my.json: the model has no `layers`")));
}

}  // namespace
}  // namespace plancast
