// Verdicts without a graph equal those of the forecast, byte for byte.

#include "planner/fits.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "planner/model_sources.h"
#include "planner/space.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

TransformerConfig SmallLlama() {
  TransformerConfig config;
  config.name = "small";
  config.layers = 12;
  config.hidden = 2048;
  config.heads = 16;
  config.kv_heads = 8;
  config.ffn = 5504;
  config.vocab = 32000;
  config.seq = 2048;
  config.norm = Norm::kRmsNorm;
  config.mlp = Mlp::kSwiglu;
  config.position = Position::kRope;
  config.qkv_bias = config.out_bias = config.mlp_bias = false;
  return config;
}

struct Case {
  Case(const std::string& profile, const std::string& preset, int hosts)
      : machine(*MachineFromPreset(absl::StrCat(preset, ":", hosts))) {
    job.model = *TransformerSource(SmallLlama());
    job.global_batch = 64;
    job.profile = *FindSoftwareProfile(profile);
  }
  Job job;
  Machine machine;
};

// Peak memory as Predict's, of the whole graph.
absl::StatusOr<std::pair<int64_t, bool>> Exact(Case& c, const ShortForm& plan, Session& session) {
  c.job.strategy = StrategyTree::FromShortForm(plan);
  PredictOptions options;
  options.memory_only_if_unfit = true;
  const auto costs = DefaultKernelCostModel();
  ASSIGN_OR_RETURN(const Forecast forecast, Predict(c.job, c.machine, *costs, session, options));
  return std::make_pair(forecast.peak_memory_bytes, forecast.fits);
}

std::string Draw(std::mt19937& random) {
  const auto pick = [&](std::vector<std::string> words) { return words[random() % words.size()]; };
  const int tp = 1 << random() % 3, pp = 1 << random() % 3;
  std::string plan = absl::StrCat("tp=", tp, ",pp=", pp, ",mb=", 1 << random() % 3);
  if (tp > 1 && random() % 2 == 0) absl::StrAppend(&plan, ",sp");
  if (pp > 1 && random() % 3 == 0) absl::StrAppend(&plan, ",vpp=", pp == 4 ? 3 : 2);
  if (pp > 1 && random() % 5 == 0) absl::StrAppend(&plan, ",schedule=gpipe");
  absl::StrAppend(&plan, pick({"", ",zero=1", ",zero=2", ",zero=3", ",zero=1"}));
  absl::StrAppend(&plan,
                  pick({"", ",recompute=selective", ",recompute=full", ",recompute=full:2"}));
  absl::StrAppend(&plan, pick({"", ",overlap=grad", ",overlap=grad+param"}));
  absl::StrAppend(&plan, pick({"", ",attn=unfused"}));
  return plan;
}

TEST(FitsTest, VerdictsOfRandomPlansEqualTheForecasts) {
  const std::vector<std::string> profiles = {"megatron-core", "megatron-2021", "layouts-2023",
                                             "fsdp"};
  int compared = 0;
  for (size_t p = 0; p < profiles.size(); ++p) {
    Case c(profiles[p], p % 2 == 0 ? "dgx-a100-80g" : "dgx-a100-40g", 2);
    Session session;
    FitCheck check(c.job, c.machine, session);
    std::mt19937 random(TestSeed(static_cast<uint32_t>(20261122 + p)));
    for (int i = 0; i < 60; ++i) {
      const std::string text = Draw(random);
      const absl::StatusOr<ShortForm> plan = ParseShortForm(text);
      if (!plan.ok()) continue;
      const auto verdict = check.Verdict(*plan);
      const auto exact = Exact(c, *plan, session);
      ASSERT_EQ(verdict.status(), exact.status()) << text;
      if (!verdict.ok()) continue;
      EXPECT_EQ(verdict->device_bytes, exact->first) << profiles[p] << " " << text;
      EXPECT_EQ(verdict->fits, exact->second) << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(FitsTest, APlanThatIsRefusedIsRefusedInTheSameWords) {
  Case c("megatron-core", "dgx-a100-80g", 1);
  Session session;
  FitCheck check(c.job, c.machine, session);
  ASSERT_OK_AND_ASSIGN(const ShortForm plan, ParseShortForm("tp=3"));
  EXPECT_EQ(check.Verdict(plan).status(), Exact(c, plan, session).status());
}

TEST(FitsTest, AVerdictNamesTheFullestStage) {
  Case c("megatron-core", "dgx-a100-80g", 1);
  Session session;
  FitCheck check(c.job, c.machine, session);
  ASSERT_OK_AND_ASSIGN(const ShortForm plan, ParseShortForm("pp=4,dp=2,mb=4"));
  ASSERT_OK_AND_ASSIGN(const FitVerdict verdict, check.Verdict(plan));
  EXPECT_TRUE(verdict.fits);
  EXPECT_EQ(verdict.stage, 0);  // four large micro-batches in flight
}

}  // namespace
}  // namespace plancast
