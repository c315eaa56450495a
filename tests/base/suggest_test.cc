#include "base/suggest.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plancast {
namespace {

using testing::ElementsAre;

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

using Strings = std::vector<std::string>;

TEST(NearestFirstTest, FindsWordsInTheirOrderWhateverIsBetweenThem) {
  const Strings models = {"llama2-70b", "llama3-8b", "llama3-70b", "llama3.1-405b"};
  EXPECT_EQ(Nearest("Meta-Llama-3-8B", models), "llama3-8b");
  EXPECT_EQ(Nearest("Llama-3.1-70B-Instruct", models), "llama3-70b");
  EXPECT_EQ(Nearest("LLAMA3_8B", models), "llama3-8b");
}

TEST(NearestFirstTest, KeepsTheOrderOfWhatHasTheNameAsAPart) {
  EXPECT_THAT(NearestFirst("h100", Strings{"dgx-h100", "p5-h100", "h100-pcie-80g", "t4-pcie"}),
              ElementsAre("dgx-h100", "p5-h100", "h100-pcie-80g"));
}

TEST(NearestFirstTest, PutsATypoBeforeAPart) {
  EXPECT_THAT(NearestFirst("gemm", Strings{"grouped-gemm", "geem", "gemm2"}),
              ElementsAre("gemm2", "geem", "grouped-gemm"));
}

TEST(NearestFirstTest, GivesNoMoreThanAsked) {
  EXPECT_THAT(NearestFirst("a", Strings{"ab"}), ElementsAre());
  EXPECT_THAT(NearestFirst("ab", Strings{"ac", "ad", "ae"}, 2), ElementsAre("ac", "ad"));
}

TEST(OfferTest, SaysTheHintFirst) {
  const Strings keys = {"dp", "tp", "sp", "pp", "vpp", "cp", "ep"};
  EXPECT_EQ(Offer("tpp", keys), " Did you mean `tp`? Like it are `pp`, `vpp`.");
  EXPECT_EQ(Offer("DP", keys), " Did you mean `dp`? Like it are `tp`, `sp`, `pp`, `cp`.");
}

TEST(OfferTest, NamesFiveOfManyWhereNoneIsNear) {
  EXPECT_EQ(Offer("zebra", Strings{"a", "b", "c", "d", "e", "f", "g"}),
            " There are `a`, `b`, `c`, `d`, `e` and 2 more.");
}

TEST(OfferTest, NamesAllOfFew) {
  EXPECT_EQ(Offer("tme", {"time", "cost", "energy"}),
            " Did you mean `time`? There are `time`, `cost`, `energy`.");
  EXPECT_EQ(Offer("x", Strings()), "");
}

TEST(JoinQuotedTest, JoinsAndShortens) {
  EXPECT_EQ(JoinQuoted(std::vector<std::string>{"a", "b", "c"}), "`a`, `b`, `c`");
  EXPECT_EQ(JoinQuoted({"a", "b", "c", "d"}, 2), "`a`, `b` and 2 more");
  EXPECT_EQ(JoinQuoted({"a", "b", "c"}, 2), "`a`, `b`, `c`");
  EXPECT_EQ(JoinQuoted(std::vector<std::string>()), "");
}

}  // namespace
}  // namespace plancast
