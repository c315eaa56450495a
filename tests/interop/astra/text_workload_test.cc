#include "interop/astra/text_workload.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(TextWorkloadTest, ForwardThenBackwardFromTheLastLayer) {
  const auto program = ReadTextWorkload(MlpModelParallelText(), "mlp");
  ASSERT_OK(program);
  // 6 x (kernel, all-gather), then input gradients, all-reduces (not of the first
  // layer) and weight gradients.
  ASSERT_EQ(program->nodes.size(), 12 + 6 + 5 + 6);
  int64_t us = 0;
  for (const AstraNode& node : program->nodes) us += node.duration_us;
  EXPECT_EQ(us, 195206);
  EXPECT_EQ(program->nodes[1].collective, AstraCollective::kAllGather);
  EXPECT_EQ(program->nodes[13].collective, AstraCollective::kAllReduce);
  EXPECT_EQ(program->nodes[13].bytes, 65536);
  // The next input gradient waits for both.
  EXPECT_EQ(program->dep_begin[16] - program->dep_begin[15], 2);
}

TEST(TextWorkloadTest, WhatSendsNothingHasNoCollective) {
  const auto program = ReadTextWorkload(
      "MODEL\n2\n"
      "one -1 100 ALLGATHER 65536 80 ALLREDUCE 65536 40 NONE 0 10\n"
      "two -1 100 NONE 0 80 NONE 0 40 NONE 0 10\n",
      "w.txt");
  ASSERT_OK(program);
  // Two kernels forward and four backward, and the first layer's all-gather.
  EXPECT_EQ(program->nodes.size(), 7);
  for (const AstraNode& node : program->nodes) {
    EXPECT_TRUE(node.kind == AstraNodeKind::kCompute || node.bytes > 0);
  }
}

TEST(TextWorkloadTest, OtherTexts) {
  EXPECT_THAT(
      ReadTextWorkload("MODEL\n2\nx -1 3 NONE 0 5 NONE 0 5 NONE 0 1", "w.txt").status().message(),
      HasSubstr("says `2` layers and has 1"));
  EXPECT_THAT(ReadTextWorkload("MODEL\n1\nx -1 3 NONE 0 5 NONE 0 5 ALLREDUCE 8 1", "w.txt")
                  .status()
                  .message(),
              HasSubstr("layer 0 sends its weight gradients"));
  EXPECT_THAT(ReadTextWorkload("DATA\n1\nx", "w.txt").status().message(),
              HasSubstr("w.txt must begin with `MODEL`"));
  EXPECT_THAT(
      ReadTextWorkload("MODEL\n1\nx -1 3 GATHER 4 5 NONE 0 5 NONE 0 1", "w.txt").status().message(),
      HasSubstr("layer 0 must be"));
}

}  // namespace
}  // namespace plancast
