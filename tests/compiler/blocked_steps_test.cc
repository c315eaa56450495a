#include <string>
#include <vector>

#include "compiler/stage_crossings.h"
#include "gtest/gtest.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// Passes of one stage: F and B.
std::vector<ScheduleStep> Steps(const std::string& passes) {
  std::vector<ScheduleStep> steps;
  for (const char pass : passes) {
    steps.emplace_back();
    steps.back().phase = pass == 'F' ? Phase::kForward : Phase::kBackward;
  }
  return steps;
}

// A letter for each step: s where compute waits for what it sends, and r for what it receives, b
// for both.
std::string Blocked(const SoftwareProfile& profile, const std::string& passes, int64_t vpp = 2,
                    Schedule schedule = Schedule::kInterleaved) {
  PlanOptions options;
  options.pp = 2;
  options.vpp = vpp;
  options.micro_batches = 2 * options.pp;  // fewer never block (CanBlock)
  options.schedule = schedule;
  const BlockedSteps blocked(options, profile.For(DType::kBf16, schedule), Steps(passes));
  std::string letters;
  for (size_t i = 0; i < passes.size(); ++i) {
    const bool sends = blocked.OfSend(i), receives = blocked.OfReceive(i);
    letters += sends && receives ? 'b' : sends ? 's' : receives ? 'r' : '-';
  }
  return letters;
}

SoftwareProfile MegatronCore() {
  const absl::StatusOr<SoftwareProfile> profile = FindSoftwareProfile("megatron-core");
  EXPECT_OK(profile.status());
  return *profile;
}

// core/pipeline_parallel/schedules.py: without overlap_p2p_comm_warmup_flush passes of warm-up and
// flush wait for what they send and for the input of the next one; in between nothing does, neither
// for the input of the first pass of the flush.
TEST(BlockedStepsTest, WarmUpAndFlushOfTheInterleavedSchedule) {
  EXPECT_EQ(Blocked(MegatronCore(), "FFFFBFBFBBBB"), "bbbr-----sbb");
}

TEST(BlockedStepsTest, AllPassesWhereForwardAndBackwardNeverTakeTurns) {
  EXPECT_EQ(Blocked(MegatronCore(), "FFFFBBBB"), "bbbbbbbb");
}

TEST(BlockedStepsTest, NoneOfALastStageThatBeginsWithATurn) {
  EXPECT_EQ(Blocked(MegatronCore(), "FBFBFB"), "------");
}

TEST(BlockedStepsTest, AProfileMayOverlapTheEnds) {
  SoftwareProfile profile = MegatronCore();
  profile.pipeline.interleaved_ends_overlap = true;
  EXPECT_EQ(Blocked(profile, "FFFFBFBFBBBB"), "------------");
}

TEST(BlockedStepsTest, AllOfOneFOneBAndNoneWhereNothingBlocks) {
  EXPECT_EQ(Blocked(MegatronCore(), "FFBFBB", 1, Schedule::k1f1b), "bbbbbb");
  SoftwareProfile profile = MegatronCore();
  profile.pipeline.p2p_blocking = false;
  EXPECT_EQ(Blocked(profile, "FFFFBFBFBBBB"), "------------");
  EXPECT_EQ(Blocked(profile, "FFBFBB", 1, Schedule::k1f1b), "------");
}

TEST(BlockedStepsTest, InterleavedWithoutOverlapBlocksThroughout) {
  SoftwareProfile profile = MegatronCore();
  profile.pipeline.interleaved_p2p_overlaps = false;
  EXPECT_EQ(Blocked(profile, "FFFFBFBFBBBB"), "bbbbbbbbbbbb");
}

}  // namespace
}  // namespace plancast
