#include "compiler/schedule/made_orders.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/check_schedule.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// Complete, in an order that stages can run together, within the bounds.
TEST(OngoingTest, StagesCanRunTheTableWithSoManyInFlight) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const int64_t p = 2 + random() % 7, m = 1 + random() % 20;
    std::vector<int64_t> most(p);
    for (int64_t& k : most) k = 1 + random() % 12;
    SCOPED_TRACE(testing::Message() << "m " << m << " " << testing::PrintToString(most));
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> found,
                         CheckSchedule(TableOfOngoing(most, m), {p, m, 1}));
    for (int64_t s = 0; s < p; ++s) EXPECT_LE(found[s], most[s]);
  }
}

// With as many as a pipeline can use, that is 1F1B.
TEST(OngoingTest, GoesBackWhenAGradientIsThere) {
  EXPECT_EQ(PrintScheduleTable(TableOfOngoing({3, 2, 1}, 4)),
            "F0.0 F1.0 F2.0 B0.0 F3.0 B1.0 B2.0 B3.0;F0.0 F1.0 B0.0 F2.0 B1.0 F3.0 B2.0 B3.0;"
            "F0.0 B0.0 F1.0 B1.0 F2.0 B2.0 F3.0 B3.0");
}

}  // namespace
}  // namespace plancast
