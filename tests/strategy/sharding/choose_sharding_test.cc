#include "strategy/sharding/choose_sharding.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/choose_plan.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// GPT-3 175B on 64 GPUs.
absl::StatusOr<ChosenPlan> Choose(const std::string& text, const SoftwareProfile& profile = {}) {
  PlanContext context;
  context.devices = 64;
  context.layers = 96;
  context.heads = context.kv_heads = 96;
  context.hidden = 12288, context.ffn = 4 * 12288, context.vocab = 51200;
  context.seq = 2048;
  context.global_batch = 64;
  absl::StatusOr<ShortForm> form = ParseShortForm(text);
  if (!form.ok()) return form.status();
  return ChoosePlan(*form, context, profile);
}

TEST(ChooseShardingTest, ProfilesSayHowPipelinesShard) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile titan, FindSoftwareProfile("torchtitan"));
  for (const auto& [text, keeps] : std::vector<std::pair<std::string, bool>>{
           {"zero=3", false}, {"pp=4,zero=3", true}, {"pp=4,zero=3,reshard=on,sync=each", false}}) {
    ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose(text, titan));
    EXPECT_EQ(plan.chosen.at("reshard"), keeps ? "off" : "on") << text;
    EXPECT_EQ(plan.chosen.at("sync"), keeps ? "last" : "each") << text;
  }
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile mixture, FindSoftwareProfile("automodel-moe"));
  ASSERT_OK_AND_ASSIGN(const ChosenPlan kept, Choose("zero=3", mixture));
  EXPECT_EQ(kept.chosen.at("reshard") + kept.chosen.at("sync"), "offlast");
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plain, Choose("pp=4,zero=3"));
  EXPECT_EQ(plain.chosen.at("reshard"), "on");
  EXPECT_EQ(plain.chosen.at("sync"), "each");
}

TEST(ChooseShardingTest, FsdpKeepsWholeUnitsWhereOthersShardGradients) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile fsdp, FindSoftwareProfile("composer"));
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("zero=2,reshard=on", fsdp));
  ASSERT_OK_AND_ASSIGN(const ChosenPlan kept, Choose("zero=3,reshard=off", fsdp));
  EXPECT_EQ(plan.chosen, kept.chosen);
  EXPECT_THAT(plan.notes, UnorderedElementsAre(HasSubstr("zero=2 is zero=3,reshard=off in"),
                                               "reshard=on has no effect with zero=2"));
  ASSERT_OK_AND_ASSIGN(const ChosenPlan other, Choose("zero=2"));
  EXPECT_EQ(other.chosen.at("zero"), "2");
}

}  // namespace
}  // namespace plancast
