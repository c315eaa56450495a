#include "strategy/schedule/check_schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/strategy/schedule/random_table.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<int64_t>> Check(const std::string& text, const ScheduleShape& shape) {
  absl::StatusOr<ScheduleTable> table = ParseScheduleTable(text);
  if (!table.ok()) return table.status();
  return CheckSchedule(*table, shape);
}

TEST(CheckScheduleTest, CountsWhatEachStageHasInFlight) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most,
                       Check("F0 F1 B0 F2 B1 B2;F0 B0 F1 B1 F2 B2", {2, 3, 1}));
  EXPECT_THAT(most, ElementsAre(2, 1));
}

TEST(CheckScheduleTest, WhatIsPutOffStaysInFlight) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most,
                       Check("F0 F1 B0 W0 B1 W1;F0 B0 F1 B1 W0 W1", {2, 2, 1}));
  EXPECT_THAT(most, ElementsAre(2, 2));
}

TEST(CheckScheduleTest, ChunksGoRoundTheStages) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most,
                       Check("F0.0 F0.1 B0.1 B0.0;F0.0 F0.1 B0.1 B0.0", {2, 1, 2}));
  EXPECT_THAT(most, ElementsAre(2, 2));
}

struct Fault {
  const char* table;
  ScheduleShape shape;
  const char* message;
};

TEST(CheckScheduleTest, FaultsAreNamedByStageAndPosition) {
  const ScheduleShape two{2, 2, 1};
  for (const Fault& fault : {
           Fault{"F0 B0 F1 B1", two, "the table lists 1 stage, and the plan has pp=2"},
           Fault{"F0 F1 B0 B1;F0 B0 F2 B1", two,
                 "stage 1, position 2 (`F2.0`): there is no micro-batch 2; the plan has 2"},
           Fault{"F0 F1 B0 B1;F0 B0.1 F1 B1", two,
                 "stage 1, position 1 (`B0.1`): there is no chunk 1; a stage has 1"},
           Fault{"F0 F0 B0 B1;F0 B0 F1 B1", two,
                 "stage 0, position 1 (`F0.0`): the step is at position 0 already"},
           Fault{"F0 F1 B0 B1;B0 F0 F1 B1", two,
                 "stage 1, position 0 (`B0.0`): it goes back before it went forward. Put `F0.0`"},
           Fault{"F0 F1 B0;F0 B0 F1 B1", two, "stage 0 ends at position 3 without `B1.0`"},
           Fault{"F0 F1 B0 W1 B1 W0;F0 B0 W0 F1 B1 W1", two,
                 "stage 0, position 3 (`W1.0`): gradients of weights are made before those of what "
                 "came in. Put `B1.0`"},
           Fault{"F0 F1 B0 W0 B1;F0 B0 W0 F1 B1 W1", two,
                 "stage 0 ends at position 5 without `W1.0`"},
           Fault{"F0 F1 B0 B1;F0 B0 F1 B1 W1 W0", two, "stage 0 ends at position 4 without `W0.0`"},
           Fault{"F0 B0;F0 B0", {2, 1'000'000'000, 1}, "micro-batches of a table can be 1048576"},
           Fault{"F0 B0;F0 B0", {2, 1, 1'000'000'000}, "micro-batches of a table can be 1048576"},
           Fault{"F0 F1 B0 B1;F0 B0", two, "stage 1 ends at position 2 without `F1.0`"},
       }) {
    EXPECT_THAT(Check(fault.table, fault.shape),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault.message)))
        << fault.table;
  }
}

TEST(CheckScheduleTest, StagesThatWaitForEachOtherAreNamed) {
  // Stage 0 goes back with the first before it sends the second, which stage 1 does first.
  EXPECT_THAT(Check("F0 B0 F1 B1;F0 F1 B0 B1", {2, 2, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stage 0, position 1 (`B0.0`) needs stage 1, position 2 "
                                 "(`B0.0`), which never runs: that stage is held up at stage 1, "
                                 "position 1 (`F1.0`)")));
}

// Down two stages and up again: the second passes its results to itself.
TEST(CheckScheduleTest, ChunksAreWhereThePlacementPutsThem) {
  for (const char* placement : {"v", "0 1 1 0"}) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<int64_t> most,
        Check(absl::StrCat(placement, ": F0.0 F0.1 B0.1 B0.0;F0.0 F0.1 B0.1 B0.0"), {2, 1, 2}));
    EXPECT_THAT(most, ElementsAre(2, 2));
  }
  // Forward passes come back in one queue, gradients in another.
  EXPECT_OK(Check("v: F0.0 F1.0 F1.1 F0.1 B0.1 B1.1 B0.0 B1.0;"
                  "F0.0 F1.0 F1.1 F0.1 B0.1 B0.0 B1.1 B1.0",
                  {2, 2, 2})
                .status());
}

TEST(CheckScheduleTest, CopiesTakeTurns) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> most,
                       Check("both-ways: F0.0 F1.1 B1.1 B0.0;F1.1 F0.0 B0.0 B1.1", {2, 2, 1}));
  EXPECT_THAT(most, ElementsAre(2, 2));
}

TEST(CheckScheduleTest, FaultsOfPlacementsAreNamed) {
  const ScheduleShape v{2, 1, 2}, copies{2, 2, 1};
  for (const Fault& fault : {
           Fault{"0 1 1: F0.0;F0.0", v, "lists 3 virtual stages, and pp*vpp is 2*2"},
           Fault{"0 1 1 1: F0.0;F0.0", v, "gives stage 0 1 chunk, and 2 are its part of the 4"},
           Fault{"0 1 1 2: F0.0;F0.0", v, "virtual stage 3 is placed on stage 2, and there are 2"},
           Fault{"zigzag: F0.0;F0.0", v, "`zigzag` is no placement. Write `loop`, `v` or"},
           Fault{"both-ways: F0.0;F0.0", v, "`both-ways` places one chunk of each copy"},
           Fault{"both-ways: F0.0;F0.0", {2, 1, 1}, "has 2 copies of the model, and the plan 1"},
           Fault{"0 1 + 0 1: F0.0;F0.0", copies, "puts virtual stage 0 of two copies on stage 0"},
           Fault{"both-ways: F0.0 F0.1 B0.1 B0.0;F1.1 F0.0 B0.0 B1.1", copies,
                 "stage 0, position 1 (`F0.1`): chunk 1 is of copy 1 of the model, and micro-batch "
                 "0 goes through copy 0"},
           Fault{"v: F0.1 F0.0 B0.1 B0.0;F0.0 F0.1 B0.1 B0.0", v,
                 "stage 0, position 0 (`F0.1`) needs stage 1, position 1 (`F0.1`)"},
           Fault{"v: F0.0 F0.1 B0.1 B0.0;F0.1 F0.0 B0.1 B0.0", v,
                 "stage 1, position 0 (`F0.1`) needs stage 1, position 1 (`F0.0`), which comes "
                 "behind "
                 "it. Put `F0.1` further back"},
       }) {
    EXPECT_THAT(Check(fault.table, fault.shape),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault.message)))
        << fault.table;
  }
}

TEST(CheckScheduleTest, ResultsAreTakenInTheOrderInWhichTheyAreHandedOn) {
  EXPECT_THAT(Check("F0 F1 B0 B1;F1 F0 B0 B1", {2, 2, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stage 1, position 0 (`F1.0`) needs stage 0, position 1 "
                                 "(`F1.0`), which that stage hands on only behind stage 0, "
                                 "position 0 (`F0.0`)")));
  EXPECT_OK(Check("F1 F0 B0 B1;F1 F0 B0 B1", {2, 2, 1}).status());
}

// Whatever order stages take turns in, what they did can be done again; with two steps changed
// about it can, or is refused, and says where.
TEST(CheckScheduleTest, WhatCanBeRunPasses) {
  std::mt19937 random(static_cast<uint32_t>(TestSeed(20261201)));
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const ScheduleShape shape{static_cast<int64_t>(1 + random() % 5),
                              static_cast<int64_t>(1 + random() % 6),
                              static_cast<int64_t>(1 + random() % 3)};
    const std::string placement =
        shape.stages > 1 && i % 3 > 0 ? RandomPlacement(shape, random) : "";
    ScheduleTable table = RandomTable(shape, random, /*weights=*/i % 2 == 0, placement);
    ASSERT_OK(CheckSchedule(table, shape).status()) << PrintScheduleTable(table);
    std::vector<ScheduleStep>& steps = table.stages[random() % table.stages.size()];
    std::swap(steps[random() % steps.size()], steps[random() % steps.size()]);
    const auto changed = CheckSchedule(table, shape);
    if (changed.ok()) continue;
    ++refused;
    EXPECT_THAT(changed.status().message(), HasSubstr("position"));
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace plancast
