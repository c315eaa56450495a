#include "compiler/program/shared_ports.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/executor/memory/event_replay.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int kActivations = static_cast<int>(MemoryKind::kActivations);
constexpr int64_t kTensor = 2 * 4 * 8;  // bytes of a stream of 4 tokens of 8 in bf16

// `layers` of a product with a relu behind it, whose result the backward pass of the relu
// reads as well as the product of the next layer.
PlanUnderTest Relus(int64_t layers, const char* last = "relu") {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}, {"ffn", 16}});
  BodyWriter& first = plan.Segment("first");
  int x = first.Input("x", DType::kCompute, {"batch", "seq", "hidden"});
  x = first.Op1("fc", "linear", {x}, {{"n", "hidden"}});
  first.OutPort(first.Op1("act", last, {x}, {{"f", "hidden"}}));
  BodyWriter& layer = plan.Segment("layers", layers);
  x = layer.InPort("x", {"batch", "seq", "hidden"});
  x = layer.Op1("fc", "linear", {x}, {{"n", "hidden"}});
  layer.OutPort(layer.Op1("act", last, {x}, {{"f", "hidden"}}));
  BodyWriter& head = plan.Segment("head");
  x = head.InPort("x", {"batch", "seq", "hidden"});
  head.OutPort(head.Op1("fc", "linear", {x}, {{"n", "ffn"}}));
  return plan;
}

ExecutionGraph Compiled(PlanUnderTest& plan) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  EXPECT_OK(graph->Verify());
  return *std::move(graph);
}

// What the forward passes of a program leave.
int64_t LeftByForward(const ExecutionGraph& graph, int32_t program = 0) {
  int64_t bytes = 0;
  for (const Instance& instance : graph.programs[program].instances) {
    if (instance.phase != Phase::kForward) continue;
    for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
      if (event.kind == MemoryKind::kActivations) bytes += event.delta * instance.layer_count;
    }
  }
  return bytes;
}

int64_t LeftAtTheEnd(const ExecutionGraph& graph, int32_t program = 0) {
  return ReplayEvents(graph, program).back().live.of[kActivations];
}

TEST(SharedPortsTest, AResultThatTheNextLayerKeepsTooIsThereOnce) {
  for (const int64_t layers : {1, 2, 5}) {
    PlanUnderTest plan = Relus(layers);
    const ExecutionGraph graph = Compiled(plan);
    // A relu's result each, and what the head hands on.
    EXPECT_EQ(LeftByForward(graph), (layers + 1) * kTensor + 2 * kTensor) << graph.DebugString();
    EXPECT_EQ(LeftAtTheEnd(graph), 0) << layers;
  }
}

TEST(SharedPortsTest, NothingIsFreedTwice) {
  PlanUnderTest plan = Relus(4);
  plan.MicroBatches(1, 3);
  for (const ReplayedEvent& event : ReplayEvents(Compiled(plan), 0)) {
    EXPECT_GE(event.live.of[kActivations], 0);
  }
}

TEST(SharedPortsTest, LayersInTheMiddleOfARunAreOneInstance) {
  PlanUnderTest plan = Relus(6);
  const ExecutionGraph graph = Compiled(plan);
  int64_t most = 0;
  for (const Instance& instance : graph.programs[0].instances) {
    most = std::max<int64_t>(most, instance.layer_count);
  }
  EXPECT_GE(most, 4);
}

TEST(SharedPortsTest, WhatCrossesToAnotherStageIsTheReceiversOwn) {
  PlanUnderTest plan = Relus(4);
  plan.Pp(2);
  const ExecutionGraph graph = Compiled(plan);
  for (int32_t program : {0, 1}) {
    for (const ReplayedEvent& event : ReplayEvents(graph, program)) {
      EXPECT_GE(event.live.of[kActivations], 0);
    }
  }
  EXPECT_EQ(LeftAtTheEnd(graph, 0), 0);
}

TEST(SharedPortsTest, LayersThatKeepNoResultLendNone) {
  // The gradient of a gelu reads what goes in.
  PlanUnderTest plan = Relus(3, "gelu");
  const ExecutionGraph graph = Compiled(plan);
  // An input of each gelu and of each product.
  EXPECT_EQ(LeftByForward(graph), (2 * 4) * kTensor + 2 * kTensor);
}

TEST(SharedPortsTest, PortsAreSharedWhereBothSidesHaveThemWhole) {
  CompiledBody lends, borrows;
  lends.blocks.out_ports = {{3, 64}, {-1, 0}, {4, 32}};
  borrows.blocks.in_ports = {{0, 1, 64}, {1, 1, 0}, {2, -1, 16}};
  EXPECT_EQ(SharedPorts(lends, borrows), 1u);  // others are kept once, or of another size
  EXPECT_EQ(SharedPorts(borrows, lends), 0u);
}

}  // namespace
}  // namespace plancast
