#include "interop/astra/csv_rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvRowsTest, QuotesAndEmptyLines) {
  const auto rows = ReadCsvRows("a,b\r\n\n\"x, \"\"y\"\"\nz\",\n1,2", "t.csv");
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 3);
  EXPECT_THAT((*rows)[0].fields, ElementsAre("a", "b"));
  EXPECT_THAT((*rows)[1].fields, ElementsAre("x, \"y\"\nz", ""));
  EXPECT_EQ((*rows)[1].line, 3);
  EXPECT_EQ((*rows)[2].line, 5);
  EXPECT_THAT(ReadCsvRows("a\n\"b", "t.csv").status().message(),
              HasSubstr("t.csv:2: a quote is not closed"));
}

}  // namespace
}  // namespace plancast
