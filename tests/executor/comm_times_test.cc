#include "executor/comm_times.h"

#include "gtest/gtest.h"

namespace plancast {
namespace {

constexpr int64_t kHalfAgain = (int64_t{3} << 20) / 2;  // kernels take 1.5 times as long

TEST(CommTimesTest, KernelAloneTakesItsTime) {
  EXPECT_EQ(CommTimes().EndOf(100, 40, kHalfAgain), 140);
}

TEST(CommTimesTest, KernelIsSlowOnlyWhileItOverlaps) {
  CommTimes times;
  times.Add(110, 125, 1);
  // 10 alone, 15 slow for work of 10, 20 alone.
  EXPECT_EQ(times.EndOf(100, 40, kHalfAgain), 145);
  EXPECT_EQ(times.EndOf(125, 40, kHalfAgain), 165);
  EXPECT_EQ(times.EndOf(70, 40, kHalfAgain), 110);
}

TEST(CommTimesTest, TwoCommunicationsSlowNoMoreThanOne) {
  CommTimes times;
  times.Add(0, 30, 1);
  times.Add(10, 60, 2);
  EXPECT_EQ(times.EndOf(0, 30, kHalfAgain), 45);
}

TEST(CommTimesTest, WorkLeftIsRoundedWhereNothingLastsOn) {
  CommTimes times;
  times.Add(0, 10, 1);
  times.Add(10, 20, 2);
  // 10 slow do floor(6.67) = 6, twice; the other 8 are alone.
  EXPECT_EQ(times.EndOf(0, 20, kHalfAgain), 28);
  times.Add(5, 15, 3);
  // One stretch of 20: floor(13.3) = 13.
  EXPECT_EQ(times.EndOf(0, 20, kHalfAgain), 27);
}

TEST(CommTimesTest, OpenOnesLastUntilClosed) {
  CommTimes times;
  times.Add(0, CommTimes::kOpen, 4);
  EXPECT_EQ(times.EndOf(0, 20, kHalfAgain), 30);
  times.Close(4, 15);
  EXPECT_EQ(times.EndOf(0, 20, kHalfAgain), 25);
}

TEST(CommTimesTest, ForgetsWhatIsOver) {
  CommTimes times;
  times.Add(0, 10, 1);
  times.Add(0, 11, 2);
  times.Forget(10);
  EXPECT_FALSE(times.empty());
  times.Forget(11);
  EXPECT_TRUE(times.empty());
}

}  // namespace
}  // namespace plancast
