#include "strategy/schedule/ongoing.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
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

// Complete, in an order that stages can run together, within the bounds.
TEST(OngoingTest, StagesCanRunTheTableWithSoManyInFlight) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const int64_t p = 2 + random() % 7, m = 1 + random() % 20;
    std::vector<int64_t> most(random() % 4 == 0 ? 1 : p);
    for (int64_t& k : most) k = 1 + random() % 12;
    SCOPED_TRACE(testing::Message() << "m " << m << " " << PrintOngoing(most));
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> found,
                         CheckSchedule(TableOfOngoing(most, p, m), {p, m, 1}));
    for (int64_t s = 0; s < p; ++s) EXPECT_LE(found[s], most.size() == 1 ? most[0] : most[s]);
  }
}

// With as many as a pipeline can use, that is 1F1B.
TEST(OngoingTest, GoesBackWhenAGradientIsThere) {
  EXPECT_EQ(PrintScheduleTable(TableOfOngoing({3, 2, 1}, 3, 4)),
            "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0;F0.0 F1.0 B0.0 F2.0 B1.0 F3.0 B2.0 B3.0;"
            "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0");
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
  EXPECT_EQ(options.schedule, Schedule::kTable);
  EXPECT_THAT(options.schedule_table, HasSubstr("F0.0 F1.0 F2.0 F3.0 F4.0 B0.0"));
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
