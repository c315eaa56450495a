#include "benchmarks/speed_cases.h"

#include "gtest/gtest.h"

namespace plancast {
namespace {

// Nothing is said about time: only that every line of the table can be filled.
TEST(SpeedCasesTest, EveryLineRuns) {
  for (const SpeedCase& which : SpeedCases(/*tiny=*/true)) {
    SCOPED_TRACE(which.what);
    const Measured measured = which.run();
    EXPECT_GT(measured.tasks, 0);
    if (which.unit != "B/task") {
      EXPECT_GT(measured.value, 0);
    }
    EXPECT_GT(which.target, 0);
    EXPECT_EQ(which.peer.empty(), which.source.empty());
  }
}

}  // namespace
}  // namespace plancast
