#include "base/embedded_file.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/base/test_files.h"

namespace plancast {
namespace {

TEST(EmbeddedFileTest, KeepsFilesInPathOrder) {
  ASSERT_EQ(TestFiles().size(), 2);
  EXPECT_EQ(TestFiles()[0].path, "testdata/one.txt");
  EXPECT_EQ(TestFiles()[1].path, "testdata/two.txt");
}

TEST(EmbeddedFileTest, KeepsEveryByte) {
  EXPECT_EQ(TestFiles()[0].contents, "first\n\"quoted\" µ\n");
}

TEST(EmbeddedFileTest, JoinsFilesLongerThanOneLiteral) {
  const absl::string_view text = TestFiles()[1].contents;
  ASSERT_GT(text.size(), 8192);
  EXPECT_TRUE(absl::StrContains(text, "line 999\nline 1000\n"));
  EXPECT_TRUE(absl::EndsWith(text, "line 1999\n"));
}

TEST(EmbeddedFileTest, FindsByStem) {
  ASSERT_NE(FindByStem(TestFiles(), "two"), nullptr);
  EXPECT_EQ(FindByStem(TestFiles(), "two")->path, "testdata/two.txt");
  EXPECT_EQ(FindByStem(TestFiles(), "three"), nullptr);
}

}  // namespace
}  // namespace plancast
