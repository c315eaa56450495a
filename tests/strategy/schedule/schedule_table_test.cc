#include "strategy/schedule/schedule_table.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ScheduleTableTest, TextGoesThereAndBack) {
  ASSERT_OK_AND_ASSIGN(const ScheduleTable table,
                       ParseScheduleTable(" F0 F1.0  B0.0 B1;F0.0 B0.0\tF1.0 B1.0 "));
  EXPECT_EQ(PrintScheduleTable(table), "F0.0 F1.0 B0.0 B1.0;F0.0 B0.0 F1.0 B1.0");
  ASSERT_OK_AND_ASSIGN(const ScheduleTable again, ParseScheduleTable(PrintScheduleTable(table)));
  EXPECT_EQ(again, table);
}

TEST(ScheduleTableTest, PairsAreTwoStepsInOneWord) {
  const char* text = "F0.0 F1.0&B0.0 B1.0";
  ASSERT_OK_AND_ASSIGN(const ScheduleTable table, ParseScheduleTable(text));
  EXPECT_EQ(table.stages[0].size(), 4u);
  EXPECT_TRUE(table.stages[0][1].pairs);
  EXPECT_FALSE(table.stages[0][2].pairs);
  EXPECT_EQ(PrintScheduleTable(table), text);
  EXPECT_TRUE(ListsPairs(table) && ListsPairs(text));
  EXPECT_FALSE(ListsPairs("F0.0 B0.0"));
  for (const char* table : {"F1&B0 B1", "F0.0&F1.0 B0.0"}) {
    EXPECT_TRUE(LooksLikeScheduleTable(table)) << table;
  }
  for (const char* wrong : {"F0.0&F1.0", "B0.0&F1.0", "F0.0&", "F0.0&W0.0", "F2&B1&B0"}) {
    EXPECT_THAT(ParseScheduleTable(wrong),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string("`") + wrong + "` is no step")));
  }
}

TEST(ScheduleTableTest, AFaultIsNamedByStageAndPosition) {
  for (const auto& [text, place] :
       {std::pair("F0.0 B0.0;F0.0 X0.0", "stage 1, position 1: `X0.0` is no step"),
        std::pair("F0.0 B", "stage 0, position 1: `B` is no step"),
        std::pair("F0. B0", "stage 0, position 0: `F0.` is no step"),
        std::pair("F0.0.1", "stage 0, position 0"), std::pair("F-1 B-1", "stage 0, position 0"),
        std::pair("F99999999999", "stage 0, position 0"), std::pair("F0 f0", "position 1: `f0`"),
        std::pair("F0 B0;;F0 B0", "stage 1 has no steps")}) {
    EXPECT_THAT(ParseScheduleTable(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(place)))
        << text;
  }
}

TEST(ScheduleTableTest, TablesAreTakenForNothingElse) {
  for (const char* text : {"F0.0 B0.0", "F0", " B12.3;F0"}) {
    EXPECT_TRUE(LooksLikeScheduleTable(text)) << text;
  }
  for (const char* text : {"", "1f1b", "Fast", "F0.csv", "./F0", "B"}) {
    EXPECT_FALSE(LooksLikeScheduleTable(text)) << text;
  }
}

}  // namespace
}  // namespace plancast
