#include "executor/simulate/trace.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

// Two entities, each with an instance of one layer and one of four, of blocks of two
// tasks.
class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    trace_.instance_begin = {0, 2};
    trace_.layer_begin = {0, 1, 5, 6};
    trace_.piece_of.assign(10, -1);
    trace_.stream_end.assign(2 * kNumStreams, 0);
  }

  SimTrace trace_;
};

TEST_F(TraceTest, NothingIsKnownAtFirst) {
  EXPECT_EQ(trace_.PieceOf(1, 1, 3), -1);
  EXPECT_EQ(trace_.StartOf(1, {1, 3, 0}), SimTrace::kUnknown);
  EXPECT_EQ(trace_.EndOf(1, {1, 3, 0}, 2), SimTrace::kUnknown);
  EXPECT_EQ(trace_.FinishOf(1), 0);
}

TEST_F(TraceTest, CopiesOfAPieceAreAPeriodApart) {
  trace_.times = {0, 0, 0, 3, 3, 8};  // from 2 on: starts, then ends
  Piece piece;
  piece.first_layer = 1;
  piece.layers = 2;
  piece.outcome = 0;
  piece.origin = 100;
  piece.period = 10;
  piece.start = 2;
  EXPECT_EQ(trace_.Add(1, 1, piece), 0);
  EXPECT_THAT(trace_.piece_of, ElementsAre(-1, -1, -1, -1, -1, -1, -1, 0, 0, -1));
  EXPECT_EQ(trace_.StartOf(1, {1, 1, 1}), 103);
  EXPECT_EQ(trace_.EndOf(1, {1, 1, 1}, 2), 108);
  EXPECT_EQ(trace_.StartOf(1, {1, 2, 1}), 113);
  EXPECT_EQ(trace_.EndOf(1, {1, 2, 0}, 2), 113);
  EXPECT_EQ(trace_.StartOf(1, {1, 3, 0}), SimTrace::kUnknown);
  EXPECT_EQ(trace_.StartOf(0, {1, 1, 1}), SimTrace::kUnknown);
}

TEST_F(TraceTest, WhatRunsTaskByTaskMayBeKnownInPart) {
  trace_.times = {0, 4, SimTrace::kUnknown, SimTrace::kUnknown};
  Piece piece;
  piece.origin = 50;
  EXPECT_EQ(trace_.Add(0, 0, piece), 0);
  EXPECT_EQ(trace_.StartOf(0, {0, 0, 1}), 54);
  EXPECT_EQ(trace_.EndOf(0, {0, 0, 1}, 2), SimTrace::kUnknown);
}

TEST_F(TraceTest, AnEntityEndsWithTheLastOfItsStreams) {
  trace_.stream_end[kNumStreams] = 7;
  trace_.stream_end[kNumStreams + 3] = 9;
  EXPECT_EQ(trace_.FinishOf(0), 0);
  EXPECT_EQ(trace_.FinishOf(1), 9);
}

TEST_F(TraceTest, ClearLeavesNothing) {
  trace_.Add(0, 0, {});
  trace_.times = {1};
  trace_.jumps = {{4, 5, {{3, 2}}}, {2, 3, {{20, 1}}}};
  trace_.makespan_ps = 5;
  EXPECT_EQ(trace_.Periods(), 6);
  trace_.Clear();
  EXPECT_TRUE(trace_.instance_begin.empty() && trace_.layer_begin.empty() &&
              trace_.piece_of.empty() && trace_.pieces.empty() && trace_.times.empty() &&
              trace_.stream_end.empty() && trace_.jumps.empty());
  EXPECT_EQ(trace_.makespan_ps, 0);
  EXPECT_EQ(trace_.Periods(), 0);
}

}  // namespace
}  // namespace plancast
