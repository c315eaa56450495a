// Which sets of ops searches try to run again.

#include "planner/search/recompute_words.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "strategy/software_profile.h"
#include "tests/planner/fit/random_plans.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

TransformerConfig SmallDeepSeek() {
  TransformerConfig config = SmallMixtral();
  config.kv_heads = config.heads;
  config.latent = {/*q_rank=*/512, /*kv_rank=*/256, /*own_dim=*/96, /*rotated_dim=*/32,
                   /*value_dim=*/128};
  return config;
}

std::vector<std::string> Usual(const TransformerConfig& config, const std::string& profile) {
  return UsualRecomputeSetsOf(*(*TransformerSource(config))->Draw({}),
                              *FindSoftwareProfile(profile));
}

std::vector<std::string> All(const TransformerConfig& config, const std::string& profile) {
  return RecomputeSetsOf(*(*TransformerSource(config))->Draw({}), *FindSoftwareProfile(profile));
}

TEST(RecomputeWordsTest, EachWordAloneAndTheFirstOnesTogether) {
  EXPECT_THAT(Usual(SmallLlama(), "megatron-core"), ElementsAre("selective:mlp"));
  EXPECT_THAT(
      Usual(SmallMixtral(), "megatron-core"),
      ElementsAre("selective:layernorm", "selective:moe_act", "selective:layernorm+moe_act"));
  EXPECT_THAT(Usual(SmallDeepSeek(), "megatron-bridge"),
              ElementsAre("selective:layernorm", "selective:moe_act", "selective:layernorm+moe_act",
                          "selective:mla_up_proj", "selective:layernorm+mla_up_proj+moe_act"));
}

TEST(RecomputeWordsTest, SoftwareWithoutThemTriesNone) {
  for (const char* profile : {"torchtitan", "fsdp", "nemo-2024", "megatron-2021", "deepspeed"}) {
    EXPECT_THAT(Usual(SmallDeepSeek(), profile), IsEmpty()) << profile;
  }
}

TEST(RecomputeWordsTest, WordsThatCoverNothingAreNoneOfAll) {
  EXPECT_THAT(All(SmallLlama(), "megatron-core"), Not(Contains("selective:layernorm")));
  EXPECT_THAT(All(SmallLlama(), "torchtitan"), Contains("selective:layernorm"));
  EXPECT_THAT(All(SmallMixtral(), "megatron-core"), Not(Contains("selective:mla_up_proj")));
  EXPECT_THAT(All(SmallDeepSeek(), "megatron-core"), Contains("selective:mla_up_proj"));
}

}  // namespace
}  // namespace plancast
