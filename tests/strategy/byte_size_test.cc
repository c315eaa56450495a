#include "strategy/byte_size.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(ByteSizeTest, ReadsDecimalAndBinaryUnits) {
  EXPECT_THAT(ParseByteSize("25MB"), IsOkAndHolds(25'000'000));
  EXPECT_THAT(ParseByteSize("25MiB"), IsOkAndHolds(26'214'400));
  EXPECT_THAT(ParseByteSize("1.5GB"), IsOkAndHolds(1'500'000'000));
  EXPECT_THAT(ParseByteSize("4 kb"), IsOkAndHolds(4'000));
  EXPECT_THAT(ParseByteSize("100"), IsOkAndHolds(100));
  EXPECT_THAT(ParseByteSize("2TiB"), IsOkAndHolds(int64_t{2} << 40));
}

TEST(ByteSizeTest, PrintsTheShortestExactText) {
  EXPECT_EQ(PrintByteSize(25'000'000), "25MB");
  EXPECT_EQ(PrintByteSize(26'214'400), "25MiB");
  EXPECT_EQ(PrintByteSize(1'001), "1001B");
  EXPECT_EQ(PrintByteSize(1'000'000'000'000), "1TB");
}

TEST(ByteSizeTest, ReadsWhatItPrints) {
  for (int64_t bytes : {int64_t{1}, int64_t{999}, int64_t{1} << 30, int64_t{123'456'789'000}}) {
    EXPECT_THAT(ParseByteSize(PrintByteSize(bytes)), IsOkAndHolds(bytes));
  }
}

TEST(ByteSizeTest, RefusesWhatIsNotAPositiveWholeNumberOfBytes) {
  for (const char* text : {"", "MB", "-1MB", "0", "0.5B", "1.2.3MB", "25Mb/s", "1e300", "nan",
                           "99999999999999999999GB"}) {
    EXPECT_THAT(ParseByteSize(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("as in `25MB`")))
        << text;
  }
}

}  // namespace
}  // namespace plancast
