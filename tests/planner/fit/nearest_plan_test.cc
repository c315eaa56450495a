#include "planner/fit/nearest_plan.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/fit/fits.h"
#include "planner/forecast/model_source.h"
#include "strategy/software_profile.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

class NearestPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "large";
    config.layers = 8;
    config.hidden = 12288;
    config.heads = config.kv_heads = 96;
    config.head_dim = 128;
    config.ffn = 49152;
    config.vocab = 51200;
    config.seq = 2048;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    job_.global_batch = 64;
    costs_ = DefaultKernelCostModel();
  }

  std::optional<NearestPlan> Nearest(const std::vector<std::string>& texts) {
    std::vector<ShortForm> plans;
    for (const std::string& text : texts) plans.push_back(*ParseShortForm(text));
    const auto nearest = FindNearestPlan(job_, machine_, *costs_, session_, plans);
    EXPECT_TRUE(nearest.ok()) << nearest.status();
    return *nearest;
  }

  Job job_;
  Machine machine_ = *MachineFromPreset("dgx-a100-40g:1x2");
  std::shared_ptr<const KernelCostModel> costs_;
  Session session_;
};

TEST_F(NearestPlanTest, IsTheOneThatNeedsLeast) {
  const std::vector<std::string> plans = {"tp=2,mb=2", "tp=2,mb=1", "tp=2,mb=1,recompute=full"};
  const std::optional<NearestPlan> nearest = Nearest(plans);
  ASSERT_TRUE(nearest.has_value());
  EXPECT_EQ(nearest->strategy, "tp=2,mb=1,recompute=full");
  FitCheck check(job_, machine_, session_);
  for (const std::string& plan : plans) {
    ASSERT_OK_AND_ASSIGN(const FitVerdict verdict, check.Verdict(*ParseShortForm(plan)));
    EXPECT_FALSE(verdict.fits);
    EXPECT_GE(verdict.device_bytes, nearest->device_bytes);
  }
  EXPECT_GT(nearest->device_bytes, nearest->capacity_bytes);
  EXPECT_THAT(nearest->advice, HasSubstr("the plan needs"));
}

TEST_F(NearestPlanTest, IsNoneWhereNoPlanIsSimulated) {
  EXPECT_FALSE(Nearest({}).has_value());
  EXPECT_FALSE(Nearest({"tp=7", "mb=3,dp=2"}).has_value());
}

TEST_F(NearestPlanTest, OfManyTheMostFrugalAreLookedAt) {
  std::vector<std::string> plans;
  for (int mb = 64; mb >= 1; mb /= 2) {
    for (int again = 0; again < 200; ++again) plans.push_back(absl::StrCat("tp=2,mb=", mb));
  }
  plans.push_back("tp=2,mb=1,recompute=full");
  ASSERT_GT(plans.size(), 1000u);
  EXPECT_EQ(Nearest(plans)->strategy, "tp=2,mb=1,recompute=full");
}

}  // namespace
}  // namespace plancast
