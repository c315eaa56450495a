#include "strategy/nodes/split_directive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Entries = std::vector<std::string>;

SplitDirective Of(const Entries& entries) { return *SplitDirective::Parse("tp", entries); }

TEST(SplitDirectiveTest, EntriesWithoutNumbersAreDimsInOrderOfPreference) {
  const SplitDirective split = Of({"heads", "ffn|vocab"});
  EXPECT_FALSE(split.is_hierarchy());
  EXPECT_EQ(split, SplitDirective("tp", {"heads", "ffn", "vocab"}));
  EXPECT_EQ(split.DebugString(), "heads | ffn | vocab");
  EXPECT_THAT(split.Sizes(8), IsOkAndHolds(ElementsAre(8)));
  EXPECT_TRUE(Of({}).cuts_nothing());
  EXPECT_EQ(Of({}).DebugString(), "-");
}

TEST(SplitDirectiveTest, EntriesWithNumbersAreLevels) {
  const SplitDirective split = Of({" heads | ffn /4", "seq/ 2"});
  EXPECT_TRUE(split.is_hierarchy());
  EXPECT_THAT(split.Entries(), ElementsAre("heads|ffn/4", "seq/2"));
  EXPECT_EQ(split.DebugString(), "heads|ffn/4, seq/2");
  EXPECT_THAT(split.Sizes(8), IsOkAndHolds(ElementsAre(4, 2)));
  EXPECT_TRUE(Of({"heads/8"}).is_hierarchy());
}

TEST(SplitDirectiveTest, WhatIsPrintedIsParsedAgain) {
  for (const Entries& entries : {Entries{},
                                 {"heads"},
                                 {"!seq", "experts"},
                                 {"heads/4", "/2"},
                                 {"heads", "seq/2"},
                                 {"a|b/2", "c/3", ".k"},
                                 {"/8"}}) {
    EXPECT_EQ(Of(Of(entries).Entries()), Of(entries));
  }
}

TEST(SplitDirectiveTest, ALevelWithoutANumberHasTheRanksThatAreLeft) {
  EXPECT_THAT(Of({"heads", "seq/2"}).Sizes(8), IsOkAndHolds(ElementsAre(4, 2)));
  EXPECT_THAT(Of({"heads", "seq/2"}).Sizes(2), IsOkAndHolds(ElementsAre(1, 2)));
  EXPECT_THAT(Of({"a/2", "b", "c/3"}).Sizes(12), IsOkAndHolds(ElementsAre(2, 2, 3)));
}

TEST(SplitDirectiveTest, TheProductIsTheSizeOfTheAxis) {
  const auto wrong = [](const Entries& entries, int64_t ranks) {
    return std::string(Of(entries).Sizes(ranks).status().message());
  };
  EXPECT_THAT(wrong({"a/4", "b/4"}, 8),
              HasSubstr("`a/4, b/4` cuts axis `tp` into 4 x 4 parts, and it has 8 ranks"));
  EXPECT_THAT(wrong({"a/2", "b/2"}, 8), HasSubstr("a last level `/2` cuts nothing"));
  EXPECT_THAT(wrong({"a/3", "b"}, 8), HasSubstr("into 3 parts, and it has 8 ranks"));
  EXPECT_THAT(wrong({"a/2147483647", "b/2147483647", "c/2147483647"}, 8), HasSubstr("8 ranks"));
}

}  // namespace
}  // namespace plancast
