#include "planner/predict_jobs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "strategy/software_profile.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PredictJobsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "small";
    config.layers = 4;
    config.hidden = 1024;
    config.heads = config.kv_heads = 16;
    config.head_dim = 64;
    config.ffn = 4096;
    config.vocab = 4096;
    config.seq = 256;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("tp=2,mb=1"));
    job_.strategy = StrategyTree::FromShortForm(form);
    job_.global_batch = 12;
    costs_ = DefaultKernelCostModel();
    Machine::Spec spec = MachineFromPreset("dgx-a100-80g:3")->spec();
    spec.nics_per_host = 1;
    ASSERT_OK_AND_ASSIGN(machine_, Machine::Create(spec));
  }

  absl::StatusOr<std::vector<JobForecast>> Go(const std::string& a, const std::string& b,
                                              double arrival_s = 0) {
    return PredictJobs({{"a", job_, a, 0}, {"b", job_, b, arrival_s}}, machine_, *costs_, session_);
  }

  Job job_;
  Machine machine_ = *MachineFromPreset("dgx-h100:1");
  std::shared_ptr<const KernelCostModel> costs_;
  Session session_;
};

TEST_F(PredictJobsTest, JobsOnOneInterfaceSlowEachOtherDown) {
  ASSERT_OK_AND_ASSIGN(const std::vector<JobForecast> jobs, Go("gpus 0-3", "gpus 4-7"));
  ASSERT_EQ(jobs.size(), 2);
  for (const JobForecast& job : jobs) {
    EXPECT_GT(job.forecast.iteration_time_s, job.alone_s);
    EXPECT_LT(job.forecast.interval_s[0], job.forecast.iteration_time_s);
    EXPECT_GT(job.forecast.interval_s[1], job.forecast.iteration_time_s);
    EXPECT_EQ(job.forecast.devices, 12);
    EXPECT_EQ(job.forecast.machine, machine_.spec().name);
    EXPECT_EQ(job.forecast.result.critical_path.total(), job.forecast.result.makespan_ps);
  }
  EXPECT_THAT(jobs[0].with, ElementsAre("b"));
}

// Alone, the job on the first hosts folds in closed form, alongside the other device
// by device: if they never meet, that is the same to the last digit.
TEST_F(PredictJobsTest, JobsThatComeLaterDoNotMatter) {
  ASSERT_OK_AND_ASSIGN(const std::vector<JobForecast> jobs,
                       Go("devices 0-11", "devices 12-23", 1000));
  EXPECT_THAT(jobs[0].with, ElementsAre("b"));
  EXPECT_EQ(jobs[0].forecast.iteration_time_s, jobs[0].alone_s);
  EXPECT_EQ(jobs[1].forecast.iteration_time_s, jobs[1].alone_s);
  EXPECT_EQ(jobs[1].arrival_s, 1000);
  ASSERT_OK_AND_ASSIGN(const std::vector<JobForecast> together,
                       Go("devices 0-11", "devices 12-23"));
  EXPECT_GT(together[0].forecast.iteration_time_s, together[0].alone_s);
}

TEST_F(PredictJobsTest, ErrorsNameTheJob) {
  EXPECT_THAT(Go("hosts 0", "hosts 7"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("job `b`: `hosts 7` leaves the machine, which has 3 hosts")));
  EXPECT_THAT(Go("hosts 0-1", "hosts 0"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("job `a`: the batch of 12 is not divisible by dp*mb = 8*1")));
  job_.global_batch = 24;
  EXPECT_THAT(Go("hosts 0-1", "hosts 1-2"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("jobs `a` and `b` are both placed on device 8")));
  EXPECT_THAT(Go("hosts 0", "hosts 1", -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job `b` arrives at -1 s")));
  EXPECT_THAT(PredictJobs({{"a", job_, "hosts 0", 0}, {"a", job_, "hosts 1", 0}}, machine_, *costs_,
                          session_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two jobs are called `a`")));
}

}  // namespace
}  // namespace plancast
