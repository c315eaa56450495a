#include "strategy/schedule/schedule_word.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/choose_schedule.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ScheduleWordTest, ReadsWhatItPrints) {
  for (const char* text :
       {"1f1b", "search", "search:1.5", "varuna", "varuna:4", "ongoing:4-3-2-1", "ongoing:8"}) {
    const auto word = ReadScheduleWord(text);
    ASSERT_TRUE(word.has_value()) << text;
    EXPECT_EQ(PrintScheduleWord(*word), text);
  }
  EXPECT_THAT(ReadScheduleWord("ongoing:4-3-2-1")->most_ongoing, ElementsAre(4, 3, 2, 1));
  EXPECT_EQ(ReadScheduleWord("search:1.5")->search_memory, 1.5);
  for (const char* text : {"ongoing", "ongoing:", "ongoing:0", "ongoing:2-", "ongoing:2000000",
                           "1f1b:2", "search:", "search:0", "varuna:x", "nothing"}) {
    EXPECT_FALSE(ReadScheduleWord(text).has_value()) << text;
  }
}

absl::Status Choose(const std::string& schedule, PlanOptions* options) {
  ShortForm form;
  form.schedule = schedule;
  if (options->vpp > 1) form.vpp = options->vpp;
  return ChooseSchedule(form, SoftwareProfile(), options, nullptr);
}

// Proteus says 1F1B and GPipe so.
TEST(ScheduleWordTest, OrdersWithANameHaveIt) {
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
  options.most_ongoing.clear();
  EXPECT_OK(Choose("varuna:4-3-2-1", &options));
  EXPECT_EQ(options.schedule, Schedule::kVaruna);
  EXPECT_THAT(options.most_ongoing, ElementsAre(4, 3, 2, 1));
}

TEST(ScheduleWordTest, RefusesOtherNumbersOfStagesAndChunks) {
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
