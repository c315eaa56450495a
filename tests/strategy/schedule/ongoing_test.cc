#include "strategy/schedule/ongoing.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/choose_schedule.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OngoingTest, ReadsWhatItPrints) {
  EXPECT_EQ(PrintOngoing({4, 3, 2, 1}), "ongoing:4-3-2-1");
  EXPECT_THAT(*ReadOngoing("ongoing:4-3-2-1"), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(*ReadOngoing("ongoing:8"), ElementsAre(8));
  for (const char* text : {"ongoing:", "ongoing:0", "ongoing:2-", "ongoing:2000000", "1f1b"}) {
    EXPECT_FALSE(ReadOngoing(text).has_value()) << text;
  }
}

absl::Status Choose(const std::string& schedule, PlanOptions* options) {
  ShortForm form;
  form.schedule = schedule;
  if (options->vpp > 1) form.vpp = options->vpp;
  return ChooseSchedule(form, options, nullptr);
}

// Proteus says 1F1B and GPipe so.
TEST(OngoingTest, OrdersWithANameHaveIt) {
  PlanOptions options;
  options.pp = 4;
  options.micro_batches = 8;
  EXPECT_OK(Choose("ongoing:4-3-2-1", &options));
  EXPECT_EQ(options.schedule, Schedule::k1f1b);
  EXPECT_OK(Choose("ongoing:9", &options));
  EXPECT_EQ(options.schedule, Schedule::kGpipe);
  EXPECT_OK(Choose("ongoing:5-3-2-1", &options));
  EXPECT_EQ(options.schedule, Schedule::kOngoing);
  EXPECT_THAT(options.most_ongoing, ElementsAre(5, 3, 2, 1));
  options.most_ongoing.clear();
  EXPECT_OK(Choose("ongoing:2", &options));
  EXPECT_THAT(options.most_ongoing, ElementsAre(2, 2, 2, 2));
}

TEST(OngoingTest, RefusesOtherNumbersOfStagesAndChunks) {
  PlanOptions options;
  options.pp = 4;
  options.micro_batches = 8;
  EXPECT_THAT(std::string(Choose("ongoing:3-2-1", &options).message()),
              HasSubstr("says it for 3 stages, and the plan has 4"));
  options.vpp = 2;
  EXPECT_THAT(std::string(Choose("ongoing:2", &options).message()),
              HasSubstr("one chunk of layers"));
}

}  // namespace
}  // namespace plancast
