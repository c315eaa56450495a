// Plans whose order follows from what their passes take: found for the plan, the same wherever it
// is asked for, and as fast in the executor as the best named one.

#include "planner/forecast/found_order.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/graph_workspace.h"
#include "cost_models/kernel_cost.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/fit/fits.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/predict.h"
#include "planner/forecast/ranked_prediction.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class FoundOrderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "small";
    config.layers = 8;
    config.hidden = 2048;
    config.heads = config.kv_heads = 16;
    config.head_dim = 128;
    config.ffn = 8192;
    config.vocab = 32000;
    config.seq = 1024;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("torchtitan"));
    job_.global_batch = 24;
    ASSERT_OK_AND_ASSIGN(machine_, MachineFromPreset("dgx-a100-80g:1"));
    costs_ = DefaultKernelCostModel();
  }

  Job JobOf(const std::string& plan) {
    Job job = job_;
    const absl::StatusOr<ShortForm> form = ParseShortForm(plan);
    EXPECT_TRUE(form.ok()) << form.status();
    job.strategy.plan() = *form;
    return job;
  }

  absl::StatusOr<Forecast> Forecasted(const std::string& plan) {
    return Predict(JobOf(plan), *machine_, *costs_, session_);
  }

  Job job_;
  std::optional<Machine> machine_;
  std::shared_ptr<const KernelCostModel> costs_;
  Session session_;
};

TEST_F(FoundOrderTest, SearchIsAsFastAsTheBestNamedOne) {
  for (const std::string plan :
       {"tp=1,pp=8,mb=1", "tp=1,pp=4,mb=1", "tp=2,pp=4,mb=1,recompute=full",
        "tp=1,pp=4,mb=2,recompute=selective"}) {
    SCOPED_TRACE(plan);
    double best = 1e9;
    for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "zbh1", "zb2p", "varuna", "zbv",
                             "zbvhalf", "zbvmin", "dualpipev", "hanayo", "dualpipe", "chimera"}) {
      const absl::StatusOr<Forecast> named = Forecasted(absl::StrCat(plan, ",schedule=", name));
      if (!named.ok()) {  // of two chunks
        EXPECT_THAT(std::string(named.status().message()), HasSubstr("more than the 8 layers"));
        continue;
      }
      best = std::min(best, named->iteration_time_s);
    }
    ASSERT_OK_AND_ASSIGN(const Forecast found, Forecasted(plan + ",schedule=search"));
    // Tables are timed without what transfers and kernels take of each other.
    EXPECT_LE(found.iteration_time_s, best * 1.005);
    EXPECT_THAT(found.notes, Contains(HasSubstr("order found from F=")));
    EXPECT_EQ(found.chosen.at("schedule"), "search");
  }
}

TEST_F(FoundOrderTest, ChunksAreOrderedToo) {
  ASSERT_OK_AND_ASSIGN(const Forecast named, Forecasted("tp=1,pp=4,vpp=2,mb=1"));
  ASSERT_OK_AND_ASSIGN(const Forecast found, Forecasted("tp=1,pp=4,vpp=2,mb=1,schedule=search"));
  EXPECT_LE(found.iteration_time_s, named.iteration_time_s * 1.005);
}

TEST_F(FoundOrderTest, SaidMemoryIsKeptTo) {
  ASSERT_OK_AND_ASSIGN(const Forecast usual, Forecasted("tp=1,pp=8,mb=1,schedule=1f1b"));
  ASSERT_OK_AND_ASSIGN(const Forecast once, Forecasted("tp=1,pp=8,mb=1,schedule=search:1"));
  ASSERT_OK_AND_ASSIGN(const Forecast twice, Forecasted("tp=1,pp=8,mb=1,schedule=search:2"));
  EXPECT_LE(once.iteration_time_s, usual.iteration_time_s);
  EXPECT_LE(twice.iteration_time_s, once.iteration_time_s * 1.001);
  EXPECT_LE(once.peak_memory_bytes, twice.peak_memory_bytes);
}

TEST_F(FoundOrderTest, IsTheSameWhereverItIsAskedFor) {
  for (const std::string schedule : {"search", "varuna", "search:1.5"}) {
    SCOPED_TRACE(schedule);
    const Job job = JobOf("tp=1,pp=4,mb=1,recompute=full,schedule=" + schedule);
    ASSERT_OK_AND_ASSIGN(const Forecast forecast, Predict(job, *machine_, *costs_, session_));
    GraphWorkspace workspace;
    Session other;
    ASSERT_OK_AND_ASSIGN(
        const Forecast ranked,
        PredictOneOfMany(
            job, *machine_, *costs_, other, [](const Forecast&) { return true; }, &workspace));
    EXPECT_EQ(ranked.result.makespan_ps, forecast.result.makespan_ps);
    EXPECT_EQ(ranked.peak_memory_bytes, forecast.peak_memory_bytes);
    EXPECT_EQ(ranked.notes, forecast.notes);
    const Pricing pricing(*costs_);
    FitCheck check(job, *machine_, other, &pricing);
    ASSERT_OK_AND_ASSIGN(const FitVerdict verdict, check.Verdict(job.strategy.plan()));
    EXPECT_EQ(verdict.device_bytes, forecast.peak_memory_bytes);
  }
}

TEST_F(FoundOrderTest, WhereWeightsStayInTheBackwardPassTheOrderSaysSo) {
  job_.profile.update.fresh_gradients = true;
  ASSERT_OK_AND_ASSIGN(const Forecast found, Forecasted("tp=1,pp=4,mb=1,schedule=search"));
  EXPECT_THAT(found.notes, Contains(HasSubstr("keeps gradients of weights in B")));
}

TEST_F(FoundOrderTest, IsNotFoundWithoutPrices) {
  EXPECT_THAT(DrawAndCompile(JobOf("tp=1,pp=4,mb=1,schedule=search"), *machine_, session_)
                  .status()
                  .message(),
              HasSubstr("nothing is priced here"));
}

TEST_F(FoundOrderTest, WithoutAPipelineItHasNoEffect) {
  ASSERT_OK_AND_ASSIGN(const Forecast forecast, Forecasted("tp=8,mb=1,schedule=search:2"));
  EXPECT_THAT(forecast.notes, Contains(HasSubstr("schedule=search:2 has no effect with pp=1")));
}

}  // namespace
}  // namespace plancast
