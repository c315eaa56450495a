#include "planner/search/rank.h"

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/predict.h"
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

// Has no memory left for products over two samples.
class FailsForTwoSamples : public KernelCostModel {
 public:
  explicit FailsForTwoSamples(std::shared_ptr<const KernelCostModel> others)
      : others_(std::move(others)) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override {
    const bool forward = kernel.family == KernelFamily::kGemm && kernel.pass == GemmPass::kForward;
    if (forward && kernel.m == 512) throw std::bad_alloc();
    return others_->Estimate(kernel, device);
  }

 private:
  std::shared_ptr<const KernelCostModel> others_;
};

TEST_F(RankTest, GoesOnBehindAPlanThatCannotBeSimulated) {
  ASSERT_OK_AND_ASSIGN(const RankResult all, Run(kSpace));
  costs_ = std::make_shared<FailsForTwoSamples>(costs_);
  ASSERT_OK_AND_ASSIGN(const RankResult result, Run(kSpace));
  EXPECT_THAT(result.plans, Not(IsEmpty()));
  EXPECT_LT(result.plans.size(), all.plans.size());
  EXPECT_THAT(result.excluded,
              Contains(Key("could not be simulated: there is not enough memory for it on this "
                           "computer")));
}

// What Ranking says of a plan, to the last digit.
void ExpectSameForecast(const Forecast& a, const Forecast& b) {
  EXPECT_EQ(a.strategy, b.strategy);
  EXPECT_EQ(a.result.makespan_ps, b.result.makespan_ps);
  EXPECT_EQ(a.interval_s[0], b.interval_s[0]);
  EXPECT_EQ(a.interval_s[1], b.interval_s[1]);
  EXPECT_EQ(a.model_flops, b.model_flops);
  EXPECT_EQ(a.hardware_flops, b.hardware_flops);
  EXPECT_EQ(a.peak_memory_bytes, b.peak_memory_bytes);
  EXPECT_EQ(a.chosen, b.chosen);
  EXPECT_EQ(a.notes, b.notes);
  EXPECT_EQ(a.result.counters.tasks, b.result.counters.tasks);
  ASSERT_EQ(a.result.classes.size(), b.result.classes.size());
  for (size_t c = 0; c < a.result.classes.size(); ++c) {
    EXPECT_EQ(a.result.classes[c].finish_ps, b.result.classes[c].finish_ps);
    EXPECT_EQ(a.result.classes[c].memory.device, b.result.classes[c].memory.device);
    EXPECT_EQ(a.result.classes[c].breakdown.bubble, b.result.classes[c].breakdown.bubble);
  }
}

TEST_F(RankTest, FourThreadsRankAsOneDoes) {
  RankOptions one, four;
  one.threads = 1;
  four.threads = 4;
  ASSERT_OK_AND_ASSIGN(RankResult a, Run("", one, "dgx-a100-80g:1"));
  ASSERT_OK_AND_ASSIGN(RankResult b, Run("", four, "dgx-a100-80g:1"));
  EXPECT_EQ(a.excluded, b.excluded);
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (size_t i = 0; i < a.plans.size(); ++i) ExpectSameForecast(a.plans[i], b.plans[i]);
}

TEST_F(RankTest, ForecastsEveryPlanAsIfItWereAlone) {
  ASSERT_OK_AND_ASSIGN(RankResult result, Run(kSpace));
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:1x4"));
  for (const Forecast& plan : result.plans) {
    ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm(plan.strategy));
    Job job = job_;
    job.strategy = StrategyTree::FromShortForm(form);
    Session session;
    ASSERT_OK_AND_ASSIGN(const Forecast alone, Predict(job, machine, *costs_, session));
    ExpectSameForecast(plan, alone);
  }
}

TEST_F(RankTest, KeepsTheBest) {
  RankOptions options;
  options.top = 3;
  ASSERT_OK_AND_ASSIGN(RankResult all, Run(kSpace));
  ASSERT_OK_AND_ASSIGN(RankResult best, Run(kSpace, options));
  ASSERT_EQ(best.plans.size(), 3u);
  EXPECT_EQ(best.evaluated + best.bounded, all.evaluated);
  EXPECT_EQ(best.excluded, all.excluded);
  std::vector<std::string> expected = Strategies(all);
  expected.resize(3);
  EXPECT_EQ(Strategies(best), expected);
}

// Bounds leave most plans out, and none of the best.
TEST_F(RankTest, TheBestByBoundsAreTheBestOfAll) {
  const std::pair<const char*, const char*> kSpaces[] = {
      {"dgx-a100-80g:1", ""},
      {"dgx-h100:2", "zero=0|1,recompute=none|full"},
      {"dgx-a100-40g:1", "schedule=1f1b|gpipe|zb1p,vpp=1"}};
  bool fewer = false;
  for (const auto& [machine, space] : kSpaces) {
    RankOptions options;
    ASSERT_OK_AND_ASSIGN(const RankResult all, Run(space, options, machine));
    for (const int64_t top : {1, 5, 20}) {
      options.top = top;
      options.threads = 1;
      ASSERT_OK_AND_ASSIGN(const RankResult one, Run(space, options, machine));
      options.threads = 3;
      ASSERT_OK_AND_ASSIGN(const RankResult three, Run(space, options, machine));
      std::vector<std::string> expected = Strategies(all);
      expected.resize(top);
      EXPECT_EQ(Strategies(one), expected) << space;
      EXPECT_EQ(Strategies(three), expected) << space;
      EXPECT_EQ(one.evaluated, three.evaluated) << space;
      EXPECT_EQ(one.evaluated + one.bounded, all.evaluated) << space;
      fewer = fewer || one.evaluated < all.evaluated;
      EXPECT_EQ(one.excluded, all.excluded) << space;
    }
  }
  EXPECT_TRUE(fewer);
}

// The nodes of the job's strategy are those of all plans: here of adapters, which are all that is
// trained.
TEST_F(RankTest, PlansHaveTheNodesOfTheJob) {
  ASSERT_OK_AND_ASSIGN(const RankResult whole, Run("zero=0|1|3"));
  const char kTree[] = R"({"nodes": {"": {"lora": {"rank": 8, "on": ["qkv", "fc1"]}}}})";
  ASSERT_OK_AND_ASSIGN(job_.strategy, StrategyTree::FromJson(kTree, "tree"));
  RankOptions options;
  ASSERT_OK_AND_ASSIGN(const RankResult all, Run("zero=0|1|3", options));
  ASSERT_FALSE(all.plans.empty());
  EXPECT_GE(all.plans.size(), whole.plans.size());
  Job alone = job_;
  ASSERT_OK_AND_ASSIGN(alone.strategy.plan(), ParseShortForm(all.plans[0].strategy));
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:1x4"));
  Session session;
  ASSERT_OK_AND_ASSIGN(const Forecast forecast, Predict(alone, machine, *costs_, session));
  EXPECT_EQ(all.plans[0].iteration_time_s, forecast.iteration_time_s);
  EXPECT_EQ(all.plans[0].peak_memory_bytes, forecast.peak_memory_bytes);
  options.top = 5;
  ASSERT_OK_AND_ASSIGN(const RankResult best, Run("zero=0|1|3", options));
  std::vector<std::string> expected = Strategies(all);
  expected.resize(5);
  EXPECT_EQ(Strategies(best), expected);
}

TEST_F(RankTest, WhatIsFoundWhenItIsStoppedStays) {
  RankOptions options;
  options.top = 3;
  options.partial = true;
  options.progress = [](const RankProgress& so_far) { return so_far.best == nullptr; };
  ASSERT_OK_AND_ASSIGN(const RankResult some, Run("mb=*", options, "dgx-a100-80g:2"));
  EXPECT_TRUE(some.stopped);
  ASSERT_FALSE(some.plans.empty());
  options.top_if_stopped = 1;
  ASSERT_OK_AND_ASSIGN(const RankResult shown, Run("mb=*", options, "dgx-a100-80g:2"));
  EXPECT_EQ(shown.plans.size(), 1u);
  options.progress = nullptr;
  ASSERT_OK_AND_ASSIGN(const RankResult all, Run("mb=*", options, "dgx-a100-80g:2"));
  EXPECT_FALSE(all.stopped);
  EXPECT_EQ(all.plans.size(), 3u);
  EXPECT_LE(all.plans[0].iteration_time_s, some.plans[0].iteration_time_s);
  EXPECT_LE(some.bound, all.plans[0].iteration_time_s);
  EXPECT_EQ(some.evaluated + some.bounded + some.open, all.evaluated + all.bounded);
}

// Plans that threads still finish after the ranking is stopped are not open, too.
TEST_F(RankTest, EveryPlanIsEitherOpenOrNotWhereSeveralThreadsAreStopped) {
  const auto in_all = [](const RankResult& result) {
    int64_t plans = result.evaluated + result.bounded + result.open;
    for (const auto& [why, count] : result.excluded) plans += count;
    return plans;
  };
  RankOptions options;
  options.threads = 3;
  options.partial = true;
  ASSERT_OK_AND_ASSIGN(const RankResult all, Run("mb=*", options, "dgx-a100-80g:2"));
  for (const int64_t top : {0, 3}) {
    options.top = top;
    for (const int64_t enough : {1, 40, 400}) {
      options.progress = [enough](const RankProgress& so_far) {
        if (so_far.done < enough) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the others go on
        return false;
      };
      ASSERT_OK_AND_ASSIGN(const RankResult some, Run("mb=*", options, "dgx-a100-80g:2"));
      EXPECT_EQ(in_all(some), in_all(all)) << top << " " << enough;
    }
    // The last report can stop it, too: nothing is open, but whoever asked wants to hear of it.
    int64_t reports = 0;
    options.progress = [&](const RankProgress& so_far) {
      ++reports;
      return so_far.done < so_far.total;
    };
    ASSERT_OK_AND_ASSIGN(const RankResult last, Run("mb=*", options, "dgx-a100-80g:2"));
    EXPECT_GT(reports, 0) << top;
    EXPECT_TRUE(last.stopped) << top;
    EXPECT_EQ(last.open, 0) << top;
    EXPECT_EQ(in_all(last), in_all(all)) << top;
  }
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
  // The one that needs least: all that can be saved is.
  ASSERT_TRUE(result.nearest.has_value());
  EXPECT_EQ(result.nearest->strategy, "dp=1,tp=4,sp,pp=1,mb=1,recompute=full");
  EXPECT_GT(result.nearest->device_bytes, result.nearest->capacity_bytes);
  EXPECT_THAT(result.nearest->advice, HasSubstr("the plan needs"));
}

TEST_F(RankTest, HasNoNearestPlanWhereSomeFit) {
  ASSERT_OK_AND_ASSIGN(RankResult result, Run(kSpace));
  EXPECT_FALSE(result.nearest.has_value());
}

TEST_F(RankTest, SaysEarlyHowLongALargeSpaceTakes) {
  RankOptions options;
  int64_t plans = 0, done_before = 0, done_so_far = 0;
  options.progress = [&](const RankProgress& progress) {
    done_so_far = progress.done;
    return true;
  };
  options.announce = [&](int64_t count, double seconds) {
    EXPECT_EQ(plans, 0) << "said twice";
    plans = count;
    done_before = done_so_far;
    EXPECT_GT(seconds, 0);
  };
  ASSERT_OK_AND_ASSIGN(RankResult result, Run("", options, "dgx-a100-80g:1"));
  int64_t all = result.evaluated;
  for (const auto& [reason, count] : result.excluded) {
    if (reason == "does not fit in memory") all += count;
  }
  EXPECT_GE(plans, all);
  EXPECT_LT(done_before, plans / 4);
  // A few plans are not worth a word.
  plans = 0;
  ASSERT_OK(Run("tp=1|2,pp=1,vpp=1,mb=1", options).status());
  EXPECT_EQ(plans, 0);
}

TEST_F(RankTest, TriesWhatTheFrameworkCanRun) {
  ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("fsdp"));
  ASSERT_OK_AND_ASSIGN(RankResult result, Run(""));
  ASSERT_THAT(result.plans, Not(IsEmpty()));
  for (const Forecast& plan : result.plans) {
    ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm(plan.strategy));
    EXPECT_EQ(job_.profile.limits.WhyNot(form, "fsdp"), "") << plan.strategy;
  }
  EXPECT_THAT(result.excluded, Contains(Key("fsdp has no pp")));
}

TEST_F(RankTest, AProgressThatSaysNoStopsIt) {
  RankOptions options;
  options.progress = [](const RankProgress&) { return false; };
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
