// No simulation is faster than its bound or that of the plan that recomputes nothing, and the
// bounds are not far below.

#include "planner/bound/time_bound.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/fit/fits.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/predict.h"
#include "tests/planner/fit/random_plans.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

const KernelCostModel& Costs() {
  static const auto& costs = *new std::shared_ptr<const KernelCostModel>(DefaultKernelCostModel());
  return *costs;
}

// PLANCAST_BOUND_PLANS: how many plans of each case (a campaign; docs/planners.md).
int PlansOfEach() {
  const char* const said = std::getenv("PLANCAST_BOUND_PLANS");
  return said == nullptr ? 60 : std::atoi(said);
}

struct Bounded {
  int64_t bound_ps = 0, makespan_ps = 0;
  double share() const { return static_cast<double>(bound_ps) / static_cast<double>(makespan_ps); }
};

class TimeBoundTest : public testing::Test {
 protected:
  // The bound of a plan and what it takes; nothing if the plan is refused or does not fit.
  static std::optional<Bounded> Of(const Case& c, FitCheck& check, TimeBound& bound,
                                   const ShortForm& plan, Session& session) {
    const absl::StatusOr<FitVerdict> verdict = check.Verdict(plan, &bound);
    if (!verdict.ok() || !verdict->fits) return std::nullopt;  // no bound of it is found
    Job job = c.job;
    job.strategy.plan() = plan;
    const absl::StatusOr<Forecast> forecast = Predict(job, c.machine, Costs(), session, {});
    if (!forecast.ok()) return std::nullopt;
    return Bounded{bound.Picoseconds(), forecast->result.makespan_ps};
  }

  // Random plans of every software and machine that is drawn, with the nodes of a tree; returns
  // how many were compared. `in_pods`: on six hosts in pods of four, which cut data parallelism.
  static int CompareRandomPlans(const std::string& tree, uint32_t seed, bool in_pods = false);
};

int TimeBoundTest::CompareRandomPlans(const std::string& tree, uint32_t seed, bool in_pods) {
  int compared = 0, without_recompute = 0;
  for (const Drawn& drawn : kDrawn) {
    Case c(drawn.experts ? SmallMixtral() : SmallLlama(), drawn.profile, drawn.preset, 2);
    if (in_pods) {
      Machine::Spec spec = c.machine.spec();
      spec.hosts = 6;
      spec.hosts_per_pod = 4;
      spec.oversubscription = 4;
      const absl::StatusOr<Machine> machine = Machine::Create(std::move(spec));
      EXPECT_OK(machine.status());
      c.machine = *machine;
      c.job.global_batch = 192;  // as many micro-batches
    }
    const absl::StatusOr<StrategyTree> nodes = StrategyTree::FromJson(tree, "tree");
    EXPECT_OK(nodes.status());
    c.job.strategy = *nodes;
    Session session;
    const Pricing pricing(Costs());
    FitCheck check(c.job, c.machine, session, &pricing);
    TimeBound bound(c.job.profile, c.machine, pricing);
    std::mt19937 random(TestSeed(seed++));
    std::vector<double> shares;
    for (int i = 0; i < PlansOfEach(); ++i) {
      const absl::StatusOr<ShortForm> plan = ParseShortForm(DrawPlan(random, drawn.experts));
      if (!plan.ok()) continue;
      const std::optional<Bounded> found = Of(c, check, bound, *plan, session);
      if (!found) continue;
      ++compared;
      shares.push_back(found->share());
      EXPECT_LE(found->bound_ps, found->makespan_ps)
          << drawn.profile << " " << PrintShortForm(*plan);
      if (!plan->offload.empty()) continue;  // what is recomputed need not come back from the host
      ShortForm bare = *plan;
      bare.ClearRecompute();
      if (bare == *plan || !check.Verdict(bare, &bound, /*of_unfit=*/true).ok()) continue;
      ++without_recompute;
      EXPECT_LE(bound.Picoseconds(), found->makespan_ps)
          << drawn.profile << " " << PrintShortForm(*plan);
    }
    if (shares.empty()) continue;
    std::sort(shares.begin(), shares.end());
    RecordProperty(absl::StrCat(drawn.profile, " median"), absl::StrCat(shares[shares.size() / 2]));
    std::cout << drawn.profile << " " << shares.size() << " plans: bound over time, quartiles "
              << shares[shares.size() / 4] << " " << shares[shares.size() / 2] << " "
              << shares[shares.size() * 3 / 4] << "\n";
  }
  EXPECT_GT(without_recompute, compared / 4);
  return compared;
}

TEST_F(TimeBoundTest, NoSimulationOfARandomPlanIsFaster) {
  EXPECT_GT(CompareRandomPlans(R"({"nodes": {}})", 20261127), 150);
}

TEST_F(TimeBoundTest, NorOfOneWhoseRanksPodsCut) {
  EXPECT_GT(CompareRandomPlans(R"({"nodes": {}})", 20261130, /*in_pods=*/true), 150);
}

TEST_F(TimeBoundTest, NorOfOneThatTrainsAdapters) {
  const std::string beside = R"("on": ["qkv", "proj"])";
  for (const char* const more : {"", R"(, "base": "nf4", "dropout": 0.1)"}) {
    const std::string tree =
        absl::StrCat(R"({"nodes": {"": {"lora": {"rank": 16, )", beside, more, "}}}}");
    EXPECT_GT(CompareRandomPlans(tree, 20261129), 100) << tree;
  }
}

}  // namespace
}  // namespace plancast
