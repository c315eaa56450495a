// Verdicts without a graph equal those of the forecast, byte for byte.

#include "planner/fit/fits.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/predict.h"
#include "planner/search/space.h"
#include "tests/planner/fit/random_plans.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// Peak memory as Predict's, of the whole graph.
absl::StatusOr<FitVerdict> Exact(Job job, const Machine& machine, const ShortForm& plan,
                                 Session& session) {
  job.strategy.plan() = plan;
  PredictOptions options;
  options.memory_only_if_unfit = true;
  static const auto& costs = *new std::shared_ptr<const KernelCostModel>(DefaultKernelCostModel());
  ASSIGN_OR_RETURN(const Forecast forecast, Predict(job, machine, *costs, session, options));
  return FitVerdict{forecast.fits, forecast.peak_memory_bytes,
                    static_cast<int64_t>(forecast.memory_capacity_bytes)};
}

void ExpectAsForecast(FitCheck& check, const Case& c, const Machine& machine, const ShortForm& plan,
                      Session& session, int* compared) {
  const std::string text = absl::StrCat(c.job.profile.name, " ", PrintShortForm(plan));
  const auto verdict = check.Verdict(plan);
  const auto exact = Exact(c.job, machine, plan, session);
  ASSERT_EQ(verdict.status(), exact.status()) << text;
  if (!verdict.ok()) return;
  EXPECT_EQ(verdict->device_bytes, exact->device_bytes) << text;
  EXPECT_EQ(verdict->fits, exact->fits) << text;
  EXPECT_EQ(verdict->capacity_bytes, exact->capacity_bytes) << text;
  ++*compared;
}

// Calls `use(case, plan)` for plans of all cases.
template <typename Use>
void ForRandomPlans(int plans, uint32_t seed, const Use& use) {
  for (const Drawn& drawn : kDrawn) {
    Case c(drawn.experts ? SmallMixtral() : SmallLlama(), drawn.profile, drawn.preset, 2);
    Session session;
    FitCheck check(c.job, c.machine, session);
    std::mt19937 random(TestSeed(seed++));
    for (int i = 0; i < plans; ++i) {
      const absl::StatusOr<ShortForm> plan = ParseShortForm(DrawPlan(random, drawn.experts));
      if (plan.ok()) use(c, check, *plan, session);
    }
  }
}

TEST(FitsTest, VerdictsOfRandomPlansEqualTheForecasts) {
  int compared = 0;
  ForRandomPlans(80, 20261122, [&](Case& c, FitCheck& check, const ShortForm& plan, Session& s) {
    ExpectAsForecast(check, c, c.machine, plan, s, &compared);
  });
  EXPECT_GT(compared, 200);
}

// Of each rule, with many micro-batches: those that come again and again are left out.
TEST(FitsTest, SoDoThoseOfEverySchedule) {
  const char* const kSchedules[] = {"1f1b",
                                    "gpipe",
                                    "eager-1f1b",
                                    "interleaved,vpp=3",
                                    "breadth-first,vpp=3",
                                    "zbh1",
                                    "zb1p",
                                    "zb2p",
                                    "zbv",
                                    "zbvhalf",
                                    "zbvmin",
                                    "dualpipe",
                                    "dualpipev",
                                    "hanayo",
                                    "hanayo,vpp=6",
                                    "chimera",
                                    "ongoing:6",
                                    "ongoing:1-3-2-1",
                                    "1f1b,vocab_parallel=vocab1",
                                    "1f1b,vocab_parallel=vocab2",
                                    "1f1b,vocab_parallel=interlaced",
                                    "zbvhalf,vocab_parallel=vocab1",
                                    "zbvhalf,vocab_parallel=vocab2",
                                    "zbvmin,vocab_parallel=vocab2"};
  const char* const kMore[] = {"",
                               ",recompute=full",
                               ",recompute=selective",
                               ",zero=1,overlap=grad+param",
                               ",zero=2",
                               ",zero=3,sync=each",
                               ",zero=3,prefetch=2,recompute=full:2",
                               ",offload=activations",
                               ",offload=activations+optimizer,sync=each",
                               ",optimizer=post-validated",
                               ",optimizer=in-backward,overlap=grad"};
  for (const char* profile : {"megatron-core", "torchtitan"}) {
    Case c(SmallLlama(), profile, "dgx-a100-40g", 2);
    c.job.global_batch = 180;
    Session session;
    FitCheck check(c.job, c.machine, session);
    for (const char* schedule : kSchedules) {
      int compared = 0;
      for (const char* more : kMore) {
        for (const char* mesh : {"pp=4,dp=4,mb=1", "pp=4,tp=2,mb=1", "pp=2,tp=2,dp=4,mb=1"}) {
          const auto plan = ParseShortForm(absl::StrCat(mesh, ",schedule=", schedule, more));
          if (plan.ok()) ExpectAsForecast(check, c, c.machine, *plan, session, &compared);
        }
      }
      EXPECT_GT(compared, 5) << profile << " " << schedule;
    }
  }
}

// With frozen layers, adapters and a base in 4 bits.
TEST(FitsTest, SoDoThoseOfPlansThatTrainAPart) {
  const char* const kNodes[] = {
      R"({"embedding": {"train": false}, "layers[0:7]": {"train": false}})",
      R"({"": {"lora": {"rank": 16, "on": ["qkv", "proj", "fc1", "fc2"]}}})",
      R"({"layers.*": {"lora": {"rank": 8, "on": ["qkv"], "dropout": 0.1, "base": "nf4"}}})"};
  int compared = 0, n = 0;
  ForRandomPlans(30, 5, [&](Case& c, FitCheck&, const ShortForm& plan, Session& session) {
    const std::string tree = absl::StrCat(R"({"nodes": )", kNodes[n++ % 3], "}");
    ASSERT_OK_AND_ASSIGN(c.job.strategy, StrategyTree::FromJson(tree, "tree"));
    FitCheck check(c.job, c.machine, session);
    ExpectAsForecast(check, c, c.machine, plan, session, &compared);
  });
  EXPECT_GT(compared, 70);
}

// Where the device has hardly more than the plan takes, places of blocks decide, of this
// stage or of another.
TEST(FitsTest, SoDoTheyNearTheCapacity) {
  int compared = 0;
  std::mt19937 random(TestSeed(7));
  ForRandomPlans(40, 77, [&](Case& c, FitCheck& check, const ShortForm& plan, Session& session) {
    const auto verdict = check.Verdict(plan);
    if (!verdict.ok()) return;
    Machine::Spec spec = c.machine.spec();
    const double share = 0.85 + 0.01 * static_cast<double>(random() % 25);
    spec.device.memory_bytes = share * static_cast<double>(verdict->device_bytes);
    spec.device.usable_bytes = 0;
    const absl::StatusOr<Machine> tight = Machine::Create(spec);
    ASSERT_OK(tight.status());
    FitCheck near(c.job, *tight, session);
    ExpectAsForecast(near, c, *tight, plan, session, &compared);
  });
  EXPECT_GT(compared, 100);
}

// Sections with unlike memories, near what the plan takes: another stage may be the fullest.
TEST(FitsTest, SoDoTheyOnMixedMachines) {
  int compared = 0, fit = 0;
  std::mt19937 random(TestSeed(11));
  ForRandomPlans(30, 177, [&](Case& c, FitCheck& check, const ShortForm& plan, Session& session) {
    const auto verdict = check.Verdict(plan);
    if (!verdict.ok()) return;
    Machine::Spec mixed;
    mixed.name = "mixed";
    for (int s = 0; s < 2; ++s) {
      Machine::Spec& section = mixed.sections.emplace_back(c.machine.spec());
      section.hosts = 1;
      section.device.name = absl::StrCat("gpu ", s);
      const double share = 0.8 + 0.01 * static_cast<double>(random() % 30);
      section.device.memory_bytes = share * static_cast<double>(verdict->device_bytes);
      section.device.usable_bytes = 0;
    }
    const absl::StatusOr<Machine> machine = Machine::Create(mixed);
    ASSERT_OK(machine.status());
    FitCheck near(c.job, *machine, session);
    ExpectAsForecast(near, c, *machine, plan, session, &compared);
    const auto there = near.Verdict(plan);
    fit += there.ok() && there->fits;
  });
  EXPECT_GT(compared, 60);
  EXPECT_GT(fit, 5);
  EXPECT_LT(fit, compared - 5);
}

TEST(FitsTest, HostsThatAreTooSmallForWhatIsOffloadedAreNamedInTheSameWords) {
  Case c(SmallLlama(), "megatron-core", "dgx-a100-80g", 1);
  Machine::Spec spec = c.machine.spec();
  spec.host_memory_bytes = 1e9;
  ASSERT_OK_AND_ASSIGN(const Machine small, Machine::Create(spec));
  Session session;
  FitCheck check(c.job, small, session);
  ASSERT_OK_AND_ASSIGN(const ShortForm plan,
                       ParseShortForm("pp=2,mb=1,offload=activations+optimizer"));
  const auto verdict = check.Verdict(plan);
  EXPECT_EQ(verdict.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(verdict.status(), Exact(c.job, small, plan, session).status());
}

TEST(FitsTest, APlanThatIsRefusedIsRefusedInTheSameWords) {
  Case c(SmallLlama(), "megatron-core", "dgx-a100-80g", 1);
  Session session;
  FitCheck check(c.job, c.machine, session);
  ASSERT_OK_AND_ASSIGN(const ShortForm plan, ParseShortForm("tp=3"));
  EXPECT_EQ(check.Verdict(plan).status(), Exact(c.job, c.machine, plan, session).status());
}

TEST(FitsTest, AVerdictNamesTheFullestStage) {
  Case c(SmallLlama(), "megatron-core", "dgx-a100-80g", 1);
  Session session;
  FitCheck check(c.job, c.machine, session);
  ASSERT_OK_AND_ASSIGN(const ShortForm plan, ParseShortForm("pp=4,dp=2,mb=4"));
  ASSERT_OK_AND_ASSIGN(const FitVerdict verdict, check.Verdict(plan));
  EXPECT_TRUE(verdict.fits);
  EXPECT_EQ(verdict.stage, 0);  // four large micro-batches in flight
}

}  // namespace
}  // namespace plancast
