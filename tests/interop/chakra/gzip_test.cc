#include "interop/chakra/gzip.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::string Long() {
  std::string text;
  for (int64_t i = 0; i < 100000; ++i) text += std::to_string(i * i % 7919);
  return text;
}

TEST(GzipTest, RoundTripAlsoOfSeveralMembers) {
  const std::string text = Long();
  EXPECT_TRUE(IsGzip(Gzip(text)));
  EXPECT_FALSE(IsGzip(text));
  EXPECT_THAT(Gunzip(Gzip(text), "x", 1 << 24), IsOkAndHolds(text));
  EXPECT_THAT(Gunzip(Gzip("one") + Gzip("two"), "x", 100), IsOkAndHolds("onetwo"));
  EXPECT_EQ(Gzip(text), Gzip(text));
}

TEST(GzipTest, CutShortTooLargeOrNoGzip) {
  const std::string packed = Gzip(Long());
  EXPECT_THAT(Gunzip(packed.substr(0, packed.size() / 2), "t.et", 1 << 24).status().message(),
              HasSubstr("t.et is not whole as gzip"));
  EXPECT_THAT(Gunzip(packed, "t.et", 1000).status().message(), HasSubstr("more than 1000 bytes"));
  std::string broken = packed;
  broken[packed.size() / 2] ^= 0x55;
  EXPECT_FALSE(Gunzip(broken, "t.et", 1 << 24).ok());
  EXPECT_FALSE(Gunzip(packed + "rubbish", "t.et", 1 << 24).ok());
  EXPECT_FALSE(Gunzip("\x1f\x8b", "t.et", 1 << 24).ok());
}

}  // namespace
}  // namespace plancast
