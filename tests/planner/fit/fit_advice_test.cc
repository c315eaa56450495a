#include "planner/fit/fit_advice.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/predict.h"
#include "strategy/short_form.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FitAdviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "wide";
    config.layers = 48;
    config.hidden = 8192;
    config.heads = config.kv_heads = 64;
    config.head_dim = 128;
    config.ffn = 32768;
    config.vocab = 4096;
    config.seq = 256;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    job_.global_batch = 32;
    ASSERT_OK_AND_ASSIGN(Machine machine, MachineFromPreset("dgx-a100-80g:2"));
    machine_ = std::make_unique<const Machine>(std::move(machine));
  }

  Job With(const std::string& plan) {
    Job job = job_;
    const absl::StatusOr<ShortForm> form = ParseShortForm(plan);
    EXPECT_TRUE(form.ok()) << form.status();
    if (form.ok()) job.strategy = StrategyTree::FromShortForm(*form);
    return job;
  }
  std::string Advice(const std::string& plan) {
    const absl::StatusOr<std::string> advice = FitAdvice(With(plan), *machine_, *costs_, session_);
    EXPECT_TRUE(advice.ok()) << advice.status();
    return advice.ok() ? *advice : "";
  }

  Job job_;
  std::unique_ptr<const Machine> machine_;
  Session session_;
  std::shared_ptr<const KernelCostModel> costs_ = DefaultKernelCostModel();
};

TEST_F(FitAdviceTest, SaysWhatIsNeededAndWhatThereIs) {
  EXPECT_THAT(Advice("tp=1"), AllOf(HasSubstr("GiB on stage 0 (weights "),
                                    HasSubstr(" and an A100-SXM-80GB has 79.2. ")));
}

TEST_F(FitAdviceTest, WhatItSaysFitsWhereItIsMade) {
  EXPECT_THAT(Advice("tp=1"), HasSubstr("Smallest changes that fit: ZeRO stage 3 over `dp` ("));
  ASSERT_OK_AND_ASSIGN(const Forecast changed,
                       Predict(With("tp=1,zero=3"), *machine_, *costs_, session_));
  EXPECT_TRUE(changed.fits);
}

TEST_F(FitAdviceTest, SmallerUnitsMayFit) {
  EXPECT_THAT(Advice("tp=1,zero=3,mb=1,unit=48"),
              HasSubstr("units of one layer, without `unit` ("));
}

TEST_F(FitAdviceTest, TensorParallelismStaysInsideOfADomain) {
  EXPECT_THAT(Advice("tp=8,mb=1"),
              AllOf(HasSubstr("Smallest changes that fit: "), Not(HasSubstr("tp=16"))));
}

TEST_F(FitAdviceTest, WhatTheSoftwareDoesNotRunIsNoAdvice) {
  const auto advice = [&](const std::string& profile, const std::string& plan) {
    const absl::StatusOr<SoftwareProfile> known = FindSoftwareProfile(profile);
    EXPECT_TRUE(known.ok()) << known.status();
    if (known.ok()) job_.profile = *known;
    return Advice(plan);
  };
  EXPECT_THAT(advice("ddp", "tp=1"), Not(AnyOf(HasSubstr("ZeRO"), HasSubstr("tp="))));
  EXPECT_THAT(advice("torchtitan", "tp=1"), AllOf(HasSubstr("stage 3"), Not(HasSubstr("stage 2"))));
  EXPECT_THAT(advice("torchtitan", "pp=4,dp=4,mb=1"), HasSubstr("tp=4,sp ("));
}

TEST_F(FitAdviceTest, PlansThatAreRefusedAreRefusedHere) {
  EXPECT_THAT(FitAdvice(With("tp=7"), *machine_, *costs_, session_).status().message(),
              Not(HasSubstr("GiB")));
}

}  // namespace
}  // namespace plancast
