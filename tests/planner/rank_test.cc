#include "planner/rank.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/model_sources.h"
#include "strategy/software_profile.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

constexpr char kSpace[] = "tp=1|2,pp=1|2,vpp=1,mb=1|2,recompute=none|full,zero=0|1";

class RankTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "small";
    config.layers = 4;
    config.hidden = 512;
    config.heads = config.kv_heads = 8;
    config.head_dim = 64;
    config.ffn = 2048;
    config.vocab = 1000;
    config.seq = 256;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    job_.global_batch = 16;
    costs_ = DefaultKernelCostModel();
  }

  absl::StatusOr<RankResult> Run(const std::string& space, RankOptions options = {},
                                 const std::string& machine_text = "dgx-a100-80g:1x4") {
    absl::StatusOr<Machine> machine = MachineFromPreset(machine_text);
    if (!machine.ok()) return machine.status();
    absl::StatusOr<SearchSpace> parsed = ParseSearchSpace(space);
    if (!parsed.ok()) return parsed.status();
    options.space = *parsed;
    Session session;
    return Rank(job_, *machine, *costs_, session, options);
  }

  static std::vector<std::string> Strategies(const RankResult& result) {
    std::vector<std::string> out;
    for (const Forecast& plan : result.plans) out.push_back(plan.strategy);
    return out;
  }

  Job job_;
  std::shared_ptr<const KernelCostModel> costs_;
};

TEST_F(RankTest, OrdersThePlansThatFitByTime) {
  ASSERT_OK_AND_ASSIGN(RankResult result, Run(kSpace));
  ASSERT_THAT(result.plans, Not(IsEmpty()));
  EXPECT_EQ(result.evaluated, static_cast<int64_t>(result.plans.size()));
  for (size_t i = 0; i < result.plans.size(); ++i) {
    EXPECT_TRUE(result.plans[i].fits);
    EXPECT_GT(result.plans[i].iteration_time_s, 0);
    if (i > 0) {
      EXPECT_LE(result.plans[i - 1].iteration_time_s, result.plans[i].iteration_time_s);
    }
  }
}

TEST_F(RankTest, DoesNotDependOnTheNumberOfThreads) {
  RankOptions one, three;
  one.threads = 1;
  three.threads = 3;
  ASSERT_OK_AND_ASSIGN(RankResult a, Run(kSpace, one));
  ASSERT_OK_AND_ASSIGN(RankResult b, Run(kSpace, three));
  EXPECT_EQ(Strategies(a), Strategies(b));
  for (size_t i = 0; i < a.plans.size(); ++i) {
    EXPECT_EQ(a.plans[i].result.makespan_ps, b.plans[i].result.makespan_ps);
  }
  EXPECT_EQ(a.excluded, b.excluded);
}

TEST_F(RankTest, KeepsTheBest) {
  RankOptions options;
  options.top = 3;
  ASSERT_OK_AND_ASSIGN(RankResult all, Run(kSpace));
  ASSERT_OK_AND_ASSIGN(RankResult best, Run(kSpace, options));
  ASSERT_EQ(best.plans.size(), 3u);
  EXPECT_EQ(best.evaluated, all.evaluated);
  EXPECT_EQ(Strategies(best)[0], Strategies(all)[0]);
}

TEST_F(RankTest, CountsPlansThatDoNotFit) {
  TransformerConfig large;
  large.name = "large";
  large.layers = 64;
  large.hidden = 12288;
  large.heads = large.kv_heads = 96;
  large.head_dim = 128;
  large.ffn = 49152;
  large.vocab = 51200;
  large.seq = 2048;
  ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(large));
  ASSERT_OK_AND_ASSIGN(RankResult result, Run("tp=4,pp=1,mb=1"));
  EXPECT_THAT(result.plans, IsEmpty());
  EXPECT_THAT(result.excluded, Contains(Key("does not fit in memory")));
}

TEST_F(RankTest, AProgressThatSaysNoStopsIt) {
  RankOptions options;
  options.progress = [](int64_t, int64_t) { return false; };
  EXPECT_EQ(Run("mb=*", options, "dgx-a100-80g:2").status().code(), absl::StatusCode::kCancelled);
}

TEST_F(RankTest, CostNeedsAPrice) {
  ASSERT_OK_AND_ASSIGN(Machine machine, MachineFromPreset("dgx-a100-80g:1x4"));
  Machine::Spec spec = machine.spec();
  spec.device.usd_per_hour = 0;
  ASSERT_OK_AND_ASSIGN(machine, Machine::Create(spec));
  RankOptions options;
  options.objective = Objective::kCost;
  Session session;
  EXPECT_THAT(Rank(job_, machine, *costs_, session, options).status().message(),
              HasSubstr("usd_per_hour"));
}

TEST(ParseObjectiveTest, NamesWhatThereIs) {
  EXPECT_EQ(*ParseObjective("energy"), Objective::kEnergy);
  EXPECT_THAT(ParseObjective("tme").status().message(), HasSubstr("Did you mean `time`?"));
  EXPECT_THAT(ParseObjective("goodput").status().message(), HasSubstr("not supported yet"));
}

}  // namespace
}  // namespace plancast
