#include "graph/models/transformer_config.h"

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
  c.mlp = Mlp::kGeglu;
  c.mlp_bias = true;
  EXPECT_THAT(Completed(c), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("mlp_bias")));
  c = Small();
  c.post_norm = c.parallel_residual = true;
  EXPECT_THAT(Completed(c), StatusIs(code, HasSubstr("cannot have both")));
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

TEST(TransformerConfigTest, JsonMistakesGetTheNearest) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const auto parse = [](const std::string& json) {
    return ParseTransformerConfig(json, "my.json");
  };
  EXPECT_THAT(parse("{\"layrs\": 2}"), StatusIs(code, HasSubstr("`layers`")));
  EXPECT_THAT(parse("{\"mlp\": \"swigul\"}"),
              StatusIs(code, HasSubstr("my.json: no mlp `swigul`; there are `gelu`, `swiglu`, "
                                       "`relu`, `geglu`. Did you mean `swiglu`?")));
  EXPECT_THAT(parse("{\"layers\": \"many\"}"), StatusIs(code, HasSubstr("my.json")));
  EXPECT_THAT(parse("{"), StatusIs(code, HasSubstr("my.json")));
  EXPECT_THAT(parse("{}"), StatusIs(code, HasSubstr("my.json: the model has no `layers`")));
}

}  // namespace
}  // namespace plancast
