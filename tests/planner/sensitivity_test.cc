#include "planner/sensitivity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/predict.h"
#include "strategy/software_profile.h"
#include "tests/planner/small_transformer.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class SensitivityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(SmallTransformer()));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("tp=2,pp=2,mb=1"));
    job_.strategy = StrategyTree::FromShortForm(form);
    job_.global_batch = 32;
    costs_ = DefaultKernelCostModel();
  }

  Job job_;
  Machine machine_ = *MachineFromPreset("dgx-h100:2x8");
  std::shared_ptr<const KernelCostModel> costs_;
  Session session_;
};

TEST_F(SensitivityTest, RanksWhatHelpsMost) {
  ASSERT_OK_AND_ASSIGN(const SensitivityTable table,
                       Sensitivities(job_, machine_, *costs_, session_));
  ASSERT_OK_AND_ASSIGN(const Forecast now, Predict(job_, machine_, *costs_, session_));
  EXPECT_EQ(table.iteration_time_s, now.iteration_time_s);
  ASSERT_GT(table.rows.size(), 15);
  for (size_t i = 1; i < table.rows.size(); ++i) {
    EXPECT_LE(table.rows[i - 1].iteration_time_s, table.rows[i].iteration_time_s);
  }
  EXPECT_LT(table.rows[0].iteration_time_s, now.iteration_time_s);
  // The same as predicting with the change.
  for (const Sensitivity& row : table.rows) {
    PredictOptions options;
    ASSERT_OK_AND_ASSIGN(options.what_if, ParseWhatIf(row.change));
    ASSERT_OK_AND_ASSIGN(const Forecast then, Predict(job_, machine_, *costs_, session_, options));
    EXPECT_EQ(then.iteration_time_s, row.iteration_time_s) << row.change;
  }
}

// Gathers of 1 MiB over pairs: NCCL leaves LL for Simple at twice the NVLink, and is slower.
TEST_F(SensitivityTest, AForecastNotesWhatALibraryChoosesBadlyOnFasterLinks) {
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("tp=2,sp,mb=4"));
  job_.strategy = StrategyTree::FromShortForm(form);
  const Machine machine = *MachineFromPreset("dgx-a100-80g:1");
  const auto said = HasSubstr("the library chooses ring/Simple for `all_gather` of 1.05 MB over 2");
  PredictOptions options;
  ASSERT_OK_AND_ASSIGN(const Forecast now, Predict(job_, machine, *costs_, session_, options));
  EXPECT_THAT(now.notes, Not(Contains(said)));
  ASSERT_OK_AND_ASSIGN(options.what_if, ParseWhatIf("nvlink=2x"));
  ASSERT_OK_AND_ASSIGN(const Forecast then, Predict(job_, machine, *costs_, session_, options));
  EXPECT_THAT(then.notes, Contains(said));
}

TEST_F(SensitivityTest, TakesCandidates) {
  ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfChange> asked, ParseWhatIf("nic=4x,op:mlp=free"));
  ASSERT_OK_AND_ASSIGN(const SensitivityTable table,
                       Sensitivities(job_, machine_, *costs_, session_, asked));
  EXPECT_EQ(table.rows.size(), 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfChange> wrong, ParseWhatIf("op:mpl=2x"));
  EXPECT_THAT(Sensitivities(job_, machine_, *costs_, session_, wrong),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("Did you mean `mlp`?")));
}

}  // namespace
}  // namespace plancast
