#include "strategy/recompute/recompute_set.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

bool Has(absl::string_view word, absl::string_view op, absl::string_view rule = "",
         absl::string_view group = "") {
  const absl::StatusOr<const RecomputeSet*> set = FindRecomputeSet(word);
  EXPECT_OK(set.status());
  return set.ok() && AnyMatches((*set)->ops, op, rule, group);
}

TEST(RecomputeSetTest, EverySetHasAWordOfItsOwnAndOps) {
  std::set<std::string> words;
  for (const RecomputeSet& set : RecomputeSets()) {
    EXPECT_TRUE(words.insert(set.word).second) << set.word;
    EXPECT_FALSE(set.description.empty()) << set.word;
    EXPECT_FALSE(set.ops.empty()) << set.word;
  }
  for (const char* word :
       {"core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts", "op"}) {
    EXPECT_EQ(words.count(word), 1u) << word;
  }
}

// Megatron-Core, core/transformer/transformer_config.py, recompute_modules.
TEST(RecomputeSetTest, MegatronsModulesThatDiscardTheirOutputs) {
  for (const char* word : {"layernorm", "mla_up_proj", "moe_act"}) {
    EXPECT_TRUE((*FindRecomputeSet(word))->discards) << word;
  }
  for (const char* word : {"core_attn", "mlp", "moe", "shared_experts"}) {
    EXPECT_FALSE((*FindRecomputeSet(word))->discards) << word;
  }
}

TEST(RecomputeSetTest, SetsHaveTheOpsOfTheirModule) {
  EXPECT_TRUE(Has("core_attn", "anything", "softmax", "core_attention"));
  EXPECT_FALSE(Has("core_attn", "attn.core"));
  EXPECT_TRUE(Has("layernorm", "mlp.norm"));
  EXPECT_FALSE(Has("layernorm", "attn.q_norm"));
  EXPECT_FALSE(Has("layernorm", "attn.q_down_norm"));
  EXPECT_TRUE(Has("mlp", "mlp.fc2"));
  EXPECT_FALSE(Has("mlp", "mlp.fc2_bias"));  // added by bias-dropout-add, outside
  EXPECT_FALSE(Has("mlp", "mlp.experts.fc1"));
  EXPECT_TRUE(Has("moe", "mlp.experts.fc1"));
  EXPECT_FALSE(Has("moe", "mlp.norm"));
  EXPECT_FALSE(Has("shared_experts", "mlp.shared.join"));
  EXPECT_TRUE(Has("mla_up_proj", "attn.rotary_q"));
  EXPECT_TRUE(Has("op", "whatever"));
}

TEST(RecomputeSetTest, AnUnknownWordListsTheKnown) {
  EXPECT_THAT(
      FindRecomputeSet("core_atn"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("no set of ops `core_atn` to recompute. Did you mean `core_attn`?")));
  EXPECT_THAT(FindRecomputeSet("core_atn"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Did you mean `core_attn`?")));
}

TEST(RecomputeSetTest, StarsStandForAnyLetters) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("mlp.*", "mlp.fc1"));
  EXPECT_TRUE(GlobMatches("*norm*", "input_layernorm.y"));
  EXPECT_TRUE(GlobMatches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(GlobMatches("a*b*c", "aXbYbZ"));
  EXPECT_TRUE(GlobMatches("mlp.fc?", "mlp.fc1"));
  EXPECT_FALSE(GlobMatches("mlp.fc?", "mlp.fc"));
  EXPECT_FALSE(GlobMatches("mlp.fc?", "mlp.fc12"));
}

}  // namespace
}  // namespace plancast
