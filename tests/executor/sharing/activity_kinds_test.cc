#include "executor/sharing/activity_kinds.h"

#include "gtest/gtest.h"

namespace plancast {
namespace {

constexpr int64_t kSecond = 1'000'000'000'000;
constexpr int64_t kOne = 1 << 20;  // coefficient 1

TEST(ActivityKindsTest, AloneTheNarrowestLinkOrTheCapHolds) {
  ActivityKinds kinds;
  const int wide = kinds.AddResource(100), narrow = kinds.AddResource(40);
  const int capped = kinds.AddKind(20, 1, {{wide, kOne}, {narrow, kOne}}, 0);
  const int held = kinds.AddKind(200, 1, {{wide, kOne}, {narrow, kOne}}, 0);
  const int twice = kinds.AddKind(200, 1, {{wide, 5 * kOne}, {narrow, kOne}}, 0);
  EXPECT_EQ(kinds.AloneTime(capped, 200), 10 * kSecond);
  EXPECT_EQ(kinds.AloneTime(held, 200), 5 * kSecond);
  EXPECT_EQ(kinds.AloneTime(twice, 200), 10 * kSecond);
}

TEST(ActivityKindsTest, RatesAreMultiplesOfTheWeight) {
  ActivityKinds kinds;
  const int link = kinds.AddResource(100);
  const int kind = kinds.AddKind(1, 3, {{link, kOne}}, 0);
  EXPECT_EQ(kinds[kind].CapQ16(), (1 << 16) / 3 * 3);
  EXPECT_EQ(kinds[kind].AloneQ16() % 3, 0);
}

TEST(ActivityKindsTest, ALinkThatIsNotLoadedIsNoUse) {
  ActivityKinds kinds;
  const int a = kinds.AddResource(100), b = kinds.AddResource(1);
  const int kind = kinds.AddKind(100, 1, {{a, kOne}, {b, 0}}, 0);
  ASSERT_EQ(kinds.UsesOf(kind).size(), 1);
  EXPECT_EQ(kinds.UsesOf(kind)[0].resource, a);
  EXPECT_EQ(kinds.AloneTime(kind, 100), kSecond);
}

TEST(ActivityKindsTest, DurationsAreRoundedUp) {
  EXPECT_EQ(ActivityKinds::Duration(10, 5), 2);
  EXPECT_EQ(ActivityKinds::Duration(11, 5), 3);
  EXPECT_EQ(ActivityKinds::Duration(0, 0), 0);
  EXPECT_EQ(ActivityKinds::Duration(1, 0), ActivityKinds::kNever);
  EXPECT_EQ(ActivityKinds::Duration(ActivityKinds::Work(int64_t{1} << 60), 1),
            ActivityKinds::kNever);
}

}  // namespace
}  // namespace plancast
