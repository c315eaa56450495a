#include "executor/memory/held_tensors.h"

#include "gtest/gtest.h"
#include "tests/executor/memory/pytorch_allocator.h"

namespace plancast {
namespace {

constexpr int32_t kX = 1, kY = 2;

class HeldTensorsTest : public testing::Test {
 protected:
  CachingAllocator allocator_{PyTorch()};
  HeldTensors tensors_{&allocator_, /*names=*/3, /*micro_batches=*/2};
};

TEST_F(HeldTensorsTest, TheNewestOfASizeGoesFirst) {
  tensors_.Allocate(kX, 0, 20 * kMiB);
  tensors_.Allocate(kX, 0, 30 * kMiB);
  tensors_.Allocate(kX, 1, 20 * kMiB);
  EXPECT_TRUE(tensors_.Free(kX, 0, 20 * kMiB));
  EXPECT_EQ(allocator_.live(), 50 * kMiB);
  EXPECT_TRUE(tensors_.Free(kX, 1, 20 * kMiB));
  EXPECT_TRUE(tensors_.Free(kX, 0, 30 * kMiB));
  EXPECT_EQ(allocator_.live(), 0);
}

TEST_F(HeldTensorsTest, WhatIsHandedOverIsFreedUnderAnotherName) {
  tensors_.Allocate(kX, 0, 20 * kMiB);
  tensors_.Rename(kX, TensorNames::kBetween, 0, 20 * kMiB);
  EXPECT_TRUE(tensors_.Free(kY, 0, 20 * kMiB));
  EXPECT_EQ(allocator_.live(), 0);
}

TEST_F(HeldTensorsTest, APartOfALargerOneLeavesTheRest) {
  tensors_.Allocate(kX, 0, 64 * kMiB);
  EXPECT_TRUE(tensors_.Free(kX, 0, 24 * kMiB));
  EXPECT_EQ(allocator_.live(), 40 * kMiB);
  EXPECT_TRUE(tensors_.Free(kX, 0, 40 * kMiB));
  EXPECT_EQ(allocator_.live(), 0);
}

TEST_F(HeldTensorsTest, SeveralGoAsOne) {
  tensors_.Allocate(kX, 0, 20 * kMiB);
  tensors_.Allocate(kX, 0, 30 * kMiB);
  EXPECT_TRUE(tensors_.Free(kX, 0, 50 * kMiB));
  EXPECT_EQ(allocator_.live(), 0);
}

TEST(TensorNamesTest, EqualNamesHaveOneNumber) {
  TensorNames names;
  EXPECT_EQ(names.size(), 1);  // what has no name in between
  const int32_t x = names.NumberOf("x");
  EXPECT_NE(x, TensorNames::kBetween);
  EXPECT_NE(names.NumberOf("y"), x);
  EXPECT_EQ(names.NumberOf("x"), x);
  EXPECT_EQ(names.size(), 3);
}

}  // namespace
}  // namespace plancast
