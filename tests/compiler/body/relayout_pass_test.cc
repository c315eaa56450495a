// The order in which a body issues relayouts and steps, and what they read.
// Which relayouts there are: collectives_table_test.cc.

#include "compiler/body/relayout_pass.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

PlanUnderTest Mlp() {
  PlanUnderTest plan({{"seq", 16}, {"hidden", 64}, {"ffn", 256}});
  BodyWriter& body = plan.Segment("layers", 2);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  int y = body.Op1("fc1", "linear", {body.Op1("norm", "rms_norm", {x})}, {{"n", "ffn"}});
  y = body.Op1("fc2", "linear", {body.Op1("act", "gelu", {y})}, {{"k", "ffn"}});
  body.OutPort(body.Op1("residual", "residual_add", {y, x}));
  return plan;
}

Block BackwardOf(PlanUnderTest& plan) {
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  return BlockNamed(*graph, "layers.B");
}

int Find(const Block& block, const std::string& label) {
  const auto found = std::find(block.label.begin(), block.label.end(), label);
  EXPECT_NE(found, block.label.end()) << label;
  return static_cast<int>(found - block.label.begin());
}

std::vector<int> DepsOf(const Block& block, int task) {
  return {block.deps.begin() + block.dep_begin[task],
          block.deps.begin() + block.dep_begin[task + 1]};
}

TEST(RelayoutOrderTest, TheInputGradientIsReducedBesideTheWeightGradient) {
  const Block block = BackwardOf(Mlp().Tp(4));
  const int reduce = Find(block, "all_reduce d norm.y");
  EXPECT_EQ(reduce, Find(block, "fc1.bwd") + 1);
  EXPECT_EQ(reduce, Find(block, "fc1.wgrad") - 1);
  EXPECT_EQ(block.stream[reduce], StreamKind::kModelComm);
  EXPECT_THAT(DepsOf(block, Find(block, "fc1.wgrad")), testing::Not(testing::Contains(reduce)));
}

TEST(RelayoutOrderTest, UnlessTheFrameworkWaitsForIt) {
  PlanUnderTest plan = Mlp();
  plan.profile().kernels.wgrad_overlaps_tp = false;
  const Block block = BackwardOf(plan.Tp(4));
  EXPECT_THAT(DepsOf(block, Find(block, "fc1.wgrad")),
              testing::Contains(Find(block, "all_reduce d norm.y")));
}

TEST(RelayoutOrderTest, GradientsOfAResidualAreSummedOnce) {
  const Block block = BackwardOf(Mlp().Tp(4));
  EXPECT_EQ(std::count(block.label.begin(), block.label.end(), "grad_add"), 1);
  // The stream's own gradient and that through the norm; it leaves the body.
  EXPECT_THAT(block.out_ports, ElementsAre(Find(block, "grad_add")));
}

TEST(RelayoutOrderTest, AGradientWaitsForWhatItReads) {
  const Block block = BackwardOf(Mlp().Tp(4).Sp());
  const int gathered = Find(block, "all_gather d fc2.y");
  EXPECT_THAT(DepsOf(block, Find(block, "fc2.bwd")), ElementsAre(gathered));
}

TEST(RelayoutOrderTest, OneDeviceNeedsNone) {
  const Block block = BackwardOf(Mlp().Tp(1));
  for (TaskKind kind : block.kind) EXPECT_EQ(kind, TaskKind::kKernel);
}

// An encoder's result reaches the decoder through an embedding that does not read it: each
// device has its own samples of it, which nobody gathers.
TEST(PortLayoutTest, WhatAModuleOnlyHandsOnIsAsTheNextReaderWantsIt) {
  PlanUnderTest plan({{"seq", 4}, {"hidden", 8}});
  const auto dims = {absl::string_view("batch"), absl::string_view("seq"),
                     absl::string_view("hidden")};
  BodyWriter& encoder = plan.Segment("encoder");
  const int x = encoder.Input("x", DType::kCompute, dims);
  encoder.OutPort(encoder.Op1("fc", "linear", {x}, {{"n", "hidden"}}));
  BodyWriter& embedding = plan.Segment("embedding");
  const int memory = embedding.InPort("memory", dims);
  const int y = embedding.Input("y", DType::kCompute, dims);
  embedding.OutPort(memory);
  embedding.OutPort(embedding.Op1("fc", "linear", {y}, {{"n", "hidden"}}));
  BodyWriter& decoder = plan.Segment("decoder");
  const int read = decoder.InPort("memory", dims), stream = decoder.InPort("y", dims);
  decoder.OutPort(decoder.Op1("add", "add", {read, stream}, {{"f", "hidden"}}));
  const Moves moves = plan.Dp(4).MicroBatches(1, 2).Traffic();
  EXPECT_THAT(moves.forward, ElementsAre());
  EXPECT_THAT(moves.backward, ElementsAre());
}

}  // namespace
}  // namespace plancast
