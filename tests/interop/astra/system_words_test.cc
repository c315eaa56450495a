#include "interop/astra/system_words.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

TEST(SystemWordsTest, Directs) {
  const auto all = AstraAlgorithmFrom("direct");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->kind, AstraAlgorithm::Kind::kDirect);
  EXPECT_EQ(all->window, 0);
  EXPECT_FALSE(all->one);
  const auto four = AstraAlgorithmFrom("oneDirect4");
  ASSERT_TRUE(four.ok()) << four.status();
  EXPECT_EQ(four->window, 4);
  EXPECT_TRUE(four->one);
  for (const char* wrong : {"direct0", "direct-1", "directly", "direct99999999999"}) {
    EXPECT_EQ(AstraAlgorithmFrom(wrong).status().code(), absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

TEST(SystemWordsTest, WordsThatAreNearlyRight) {
  EXPECT_THAT(AstraAlgorithmFrom("halvingDoublin").status().message(),
              testing::HasSubstr("`halvingDoubling`"));
  EXPECT_THAT(AstraWiringFrom("ring").status().message(), testing::HasSubstr("`Ring`"));
  EXPECT_THAT(AstraOrderFrom("lifo").status().message(), testing::HasSubstr("`LIFO`"));
  EXPECT_THAT(AstraOptimizationFrom("localBwAware").status().message(),
              testing::HasSubstr("`localBWAware`"));
}

TEST(SystemWordsTest, Words) {
  EXPECT_TRUE(AstraOptimizationFrom("localBWAware").value());
  EXPECT_FALSE(AstraOptimizationFrom("baseline").value());
  EXPECT_EQ(AstraOrderFrom("FIFO").value(), AstraSystem::Order::kFifo);
  EXPECT_EQ(AstraWiringFrom("Switch").value(), AstraWiring::kSwitch);
  EXPECT_EQ(AstraAlgorithmFrom("doubleBinaryTree")->kind, AstraAlgorithm::Kind::kDoubleBinaryTree);
}

}  // namespace
}  // namespace plancast
