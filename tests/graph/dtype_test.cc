#include "graph/dtype.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(DTypeTest, StoresWholeBlocksWithTheirScales) {
  EXPECT_EQ(StoredBytes(DType::kBf16, 1001), 2002);
  EXPECT_EQ(StoredBytes(DType::kFp8, 1001), 1001);
  EXPECT_EQ(StoredBytes(DType::kMxfp8, 1024), 1024 + 32);
  EXPECT_EQ(StoredBytes(DType::kMxfp8, 1025), 1025 + 33);
  EXPECT_EQ(StoredBytes(DType::kNvfp4, 1024), 512 + 64);
  EXPECT_EQ(StoredBytes(DType::kNvfp4, 1), 1 + 1);
  EXPECT_EQ(StoredBytes(DType::kFp8Block, 1024), 1024 + 8 * 4);
  // bitsandbytes: an fp32 maximum for each 256 elements, the last block its own.
  EXPECT_EQ(StoredBytes(DType::kInt8, 4096), 4096 + 16 * 4);
  EXPECT_EQ(StoredBytes(DType::kInt8, 4097), 4097 + 17 * 4);
  EXPECT_EQ(StoredBytes(DType::kInt4, 1024), 512 + 8 * 4);
  EXPECT_EQ(StoredBytes(DType::kInt16, 7), 14);
}

TEST(DTypeTest, AnElementHasItsShareOfTheScale) {
  EXPECT_EQ(ElementBytes(DType::kMxfp8), 1 + 1.0 / 32);
  EXPECT_EQ(ElementBytes(DType::kNvfp4), 0.5 + 1.0 / 16);
  EXPECT_EQ(ElementBytes(DType::kInt8), 1 + 4.0 / 256);
  EXPECT_EQ(ElementBytes(DType::kFp8Block), 1 + 4.0 / 128);
  for (const DType type : {DType::kFp32, DType::kMxfp8, DType::kNvfp4, DType::kInt8, DType::kInt4,
                           DType::kFp8Block, DType::kFp8Row}) {
    EXPECT_EQ(static_cast<double>(StoredBytes(type, 1 << 20)), ElementBytes(type) * (1 << 20));
  }
}

TEST(DTypeTest, GroupsOfIntegersAreLargerOnTheWire) {
  EXPECT_EQ(WireBytes(DType::kInt8), 1 + 4.0 / 4096);
  EXPECT_EQ(WireBytes(DType::kInt4), 0.5 + 4.0 / 4096);
  EXPECT_EQ(WireBytes(DType::kBf16), 2);
  EXPECT_EQ(WireBytes(DType::kMxfp8), ElementBytes(DType::kMxfp8));
}

TEST(DTypeTest, NamesRoundTrip) {
  for (int i = 1; i <= static_cast<int>(DType::kInt4); ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_THAT(ParseDType(DTypeName(type)), IsOkAndHolds(type)) << i;
  }
  EXPECT_THAT(ParseDType("fp9"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`fp8-block`")));
}

TEST(DTypeTest, ProductsOfFewBitsKeepTheirTensorsIn16) {
  for (const DType type : {DType::kFp8, DType::kFp8Row, DType::kFp8Block, DType::kMxfp8}) {
    EXPECT_TRUE(IsFp8(type) && IsQuantized(type));
    EXPECT_EQ(StorageType(type), DType::kBf16);
  }
  EXPECT_TRUE(IsQuantized(DType::kNvfp4));
  EXPECT_FALSE(IsFp8(DType::kNvfp4));
  EXPECT_FALSE(IsQuantized(DType::kInt8));
}

}  // namespace
}  // namespace plancast
