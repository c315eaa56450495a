#include "base/suggest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace plancast {
namespace {

TEST(DidYouMeanTest, FindsTypos) {
  EXPECT_EQ(DidYouMean("tpp", {"pp", "dp", "tp"}), " Did you mean `tp`?");
  EXPECT_EQ(DidYouMean("recmopute", {"schedule", "recompute"}), " Did you mean `recompute`?");
  EXPECT_EQ(DidYouMean("interleave", {"1f1b", "interleaved"}), " Did you mean `interleaved`?");
}

TEST(DidYouMeanTest, IgnoresCaseAndDashes) {
  EXPECT_EQ(DidYouMean("DGX_H100", {"dgx-a100", "dgx-h100"}), " Did you mean `dgx-h100`?");
}

TEST(DidYouMeanTest, FindsParts) {
  EXPECT_EQ(DidYouMean("h100", {"dgx-a100", "dgx-h100"}), " Did you mean `dgx-h100`?");
}

TEST(DidYouMeanTest, PrefersTheFirstOfEquals) {
  EXPECT_EQ(DidYouMean("xp", {"tp", "pp"}), " Did you mean `tp`?");
}

TEST(DidYouMeanTest, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(DidYouMean("zebra", {"tp", "pipeline"}), "");
  EXPECT_EQ(DidYouMean("", {"tp"}), "");
  EXPECT_EQ(DidYouMean("tp", std::vector<std::string>()), "");
}

TEST(DidYouMeanTest, IsSilentAboutWhatIsLong) {
  EXPECT_EQ(DidYouMean(std::string(1 << 20, 't') + "tp", {"tp"}), "");
}

TEST(JoinQuotedTest, JoinsAndShortens) {
  EXPECT_EQ(JoinQuoted(std::vector<std::string>{"a", "b", "c"}), "`a`, `b`, `c`");
  EXPECT_EQ(JoinQuoted({"a", "b", "c", "d"}, 2), "`a`, `b` and 2 more");
  EXPECT_EQ(JoinQuoted({"a", "b", "c"}, 2), "`a`, `b`, `c`");
  EXPECT_EQ(JoinQuoted(std::vector<std::string>()), "");
}

}  // namespace
}  // namespace plancast
