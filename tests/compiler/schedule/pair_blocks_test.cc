// A forward and a backward block as one: whose turn it is, and what both keep.

#include "compiler/program/pair_blocks.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/moe_layer.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/schedule/compiled_makespan.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

constexpr MoeSizes kSizes;

// Kernels and exchanges of tokens, by name: each waits for the one before.
BlockTemplate Chain(const std::string& name, Purpose purpose,
                    const std::vector<std::string>& tasks) {
  BlockBuilder builder(name, 1);
  int before = ~0;
  for (const std::string& task : tasks) {
    if (task == "dispatch" || task == "combine") {
      CommSpec comm;
      comm.kind = CollectiveKind::kAllToAll;
      comm.bytes = 8;
      comm.axes = {0};
      before = builder.AddComm(comm, StreamKind::kModelComm, Purpose::kEp, task, {before});
    } else {
      before = builder.AddKernel(KernelSpec(), purpose, task, {before});
    }
    const uint16_t tensor = builder.AddTensor(task);
    builder.AddMemory(before, false, MemoryKind::kActivations, tensor, 4);
  }
  builder.AddOutPort(before);
  return std::move(builder).Build();
}

std::vector<std::string> Order(const Block& block) {
  std::vector<std::string> order;
  for (int32_t t = 0; t < block.size(); ++t) {
    order.push_back((block.IsPairForward(t) ? "F." : "B.") + block.label[t]);
  }
  return order;
}

TEST(PairBlocksTest, TasksTakeTurnsWhereOneWaitsForTokens) {
  const BlockTemplate f =
      Chain("f", Purpose::kForward, {"attn", "dispatch", "experts", "combine", "add"});
  const BlockTemplate b =
      Chain("b", Purpose::kBackward, {"add", "combine", "experts", "dispatch", "attn"});
  const Block pair = PairBlocks(f, b).block;
  EXPECT_THAT(Order(pair), ElementsAre("B.add", "B.combine", "F.attn", "F.dispatch", "B.experts",
                                       "B.dispatch", "F.experts", "F.combine", "B.attn", "F.add"));
  EXPECT_EQ(pair.num_in_ports, 2);
  EXPECT_EQ(pair.forward_in_ports, 1);
  EXPECT_EQ(pair.forward_out_ports, 1);
  EXPECT_THAT(pair.out_ports, ElementsAre(9, 8));
  // Each half waits for itself alone.
  for (int32_t t = 0; t < pair.size(); ++t) {
    for (int32_t d = pair.dep_begin[t]; d < pair.dep_begin[t + 1]; ++d) {
      if (pair.deps[d] < 0) {
        EXPECT_EQ(~pair.deps[d], pair.IsPairForward(t) ? 0 : 1);
      } else {
        EXPECT_EQ(pair.IsPairForward(pair.deps[d]), pair.IsPairForward(t));
      }
    }
  }
  ASSERT_EQ(pair.memory.size(), 10u);
  for (size_t i = 0; i < pair.memory.size(); ++i) {
    EXPECT_EQ(pair.memory[i].task, static_cast<int32_t>(i));
    EXPECT_EQ(pair.tensors[pair.memory[i].tensor], pair.label[i]);
  }
}

TEST(PairBlocksTest, WhatExchangesNothingIsOneTurn) {
  const BlockTemplate f = Chain("f", Purpose::kForward, {"attn", "dispatch", "experts"});
  const BlockTemplate b = Chain("b", Purpose::kBackward, {"mlp", "attn"});
  EXPECT_THAT(Order(PairBlocks(f, b).block),
              ElementsAre("B.mlp", "B.attn", "F.attn", "F.dispatch", "F.experts"));
}

// A sharded block that may gather says behind its other out-ports when its compute may begin.
TEST(PairBlocksTest, OnlyTheBackwardPassTellsWhenItBegins) {
  BlockTemplate f = Chain("f", Purpose::kForward, {"attn", "dispatch", "experts"});
  BlockTemplate b = Chain("b", Purpose::kBackward, {"mlp", "attn"});
  for (BlockTemplate* half : {&f, &b}) {
    half->block.out_ports.push_back(~0);
    half->tells_begin = true;
  }
  const BlockTemplate pair = PairBlocks(f, b);
  EXPECT_TRUE(pair.tells_begin);
  EXPECT_EQ(pair.block.forward_out_ports, 1);
  EXPECT_THAT(pair.block.out_ports, ElementsAre(4, 1, ~1));
}

// Layers with one product before their experts, cut over four ranks of each stage.
PlanUnderTest Layers(int64_t layers, bool pairs) {
  PlanUnderTest plan(kSizes.Dims());
  BodyWriter& body = plan.Segment("layers", layers);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  const int attn = body.Op1("attn", "linear", {x}, {{"n", "hidden"}, {"k", "hidden"}});
  body.OutPort(WriteMoeLayer(body, attn));
  plan.Dp(4).Ep(4);
  if (pairs) plan.options().overlap.insert(Overlap::kEp);
  return plan;
}

// A second for each product, and so many for each exchange of tokens.
double Makespan(PlanUnderTest& plan, int64_t devices, double exchange) {
  const auto exchange_ps = static_cast<int64_t>(exchange * 1e12);
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph);
  for (KernelSpec& kernel : graph->kernels) kernel.flops = ProductSeconds(kernel);
  const absl::StatusOr<Machine> machine = Machine::Create(UnitMachine(1, devices));
  EXPECT_OK(machine);
  const auto price = [&](const GroupPattern&, const CommSpec& comm) {
    RealisedCollective result;
    result.rate_cap_bytes_per_s = 1;
    if (comm.kind == CollectiveKind::kAllToAll) result.delay_ps = exchange_ps;
    return absl::StatusOr<RealisedCollective>(result);
  };
  const auto simulation = Simulation::Run(*graph, *machine, price);
  EXPECT_OK(simulation);
  return simulation.ok() ? (*simulation)->makespan() : -1.0;
}

// What a layer computes beside what another exchanges costs nothing more.
TEST(PairBlocksTest, ExchangesHideBehindTheOtherPass) {
  constexpr int64_t kLayers = 3, kMicroBatches = 5;
  const auto makespan = [&](bool pairs, double exchange) {
    PlanUnderTest plan = Layers(kLayers, pairs);
    plan.MicroBatches(1, kMicroBatches);
    return Makespan(plan, 4, exchange);
  };
  const double compute = makespan(false, 0);
  ASSERT_GT(compute, 0);
  EXPECT_DOUBLE_EQ(makespan(true, 0), compute);
  // Two exchanges a layer each way, one behind the other.
  EXPECT_NEAR(makespan(false, 1), compute + 4 * kLayers * kMicroBatches, 1e-9);
  // In pairs those of the first F and of the last B alone wait for themselves.
  EXPECT_LE(makespan(true, 1), compute + 4 * kLayers + 1e-9);
}

// Bytes of all collectives over data-parallel ranks, by kind.
std::map<CollectiveKind, double> ShardedBytes(PlanUnderTest& plan) {
  std::map<CollectiveKind, double> bytes;
  const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph);
  if (!graph.ok()) return bytes;
  for (const Program& program : graph->programs) {
    for (const Instance& instance : program.instances) {
      const Block& block = graph->blocks[instance.block];
      for (int32_t t = 0; t < block.size(); ++t) {
        if (block.kind[t] != TaskKind::kComm || block.purpose[t] != Purpose::kDp) continue;
        const CommSpec& comm = graph->comms[block.spec[t]];
        bytes[comm.kind] += static_cast<double>(comm.bytes) * instance.layer_count;
      }
    }
  }
  return bytes;
}

// Each pass gathers and reduces what it does by itself, and exchanges are hidden all the same.
TEST(PairBlocksTest, ShardedLayersGatherAndReduceTheSameInPairs) {
  constexpr int64_t kStages = 2, kMicroBatches = 6;
  for (const int zero : {2, 3}) {
    for (const Schedule schedule : {Schedule::kNone, Schedule::kEager1f1b, Schedule::kDualPipeV}) {
      for (const bool each : {false, true}) {
        SCOPED_TRACE(testing::Message() << "zero=" << zero << " " << kScheduleNames[schedule]
                                        << (each ? " sync=each" : ""));
        const auto plan_of = [&](bool pairs) {
          PlanUnderTest plan = Layers(4 * kStages, pairs);
          if (schedule != Schedule::kNone) {
            plan.Pp(kStages, schedule, schedule == Schedule::kDualPipeV ? 2 : 1);
          }
          plan.MicroBatches(1, kMicroBatches);
          plan.options().zero = zero;
          plan.options().prefetch = 1;
          plan.options().sync_each = each;
          return plan;
        };
        PlanUnderTest alone = plan_of(false), paired = plan_of(true);
        const auto bytes = ShardedBytes(alone);
        EXPECT_FALSE(bytes.empty());
        EXPECT_EQ(ShardedBytes(paired), bytes);
        const int64_t devices = schedule == Schedule::kNone ? 4 : 4 * kStages;
        const double compute = Makespan(alone, devices, 0);
        EXPECT_LT(Makespan(paired, devices, 1) - compute,
                  (Makespan(alone, devices, 1) - compute) / 2);
      }
    }
  }
}

// DualPipe's F&B: the exchanges of its pairs are hidden, those of lone passes at both ends are not.
TEST(PairBlocksTest, DualPipeHidesTheExchangesOfItsPairs) {
  constexpr int64_t kStages = 4, kMicroBatches = 24;
  const auto makespan = [&](bool pairs, double exchange) {
    PlanUnderTest plan = Layers(2 * kStages, pairs);
    plan.Pp(kStages, Schedule::kDualPipeV, 2).MicroBatches(1, kMicroBatches);
    return Makespan(plan, 4 * kStages, exchange);
  };
  const double compute = makespan(false, 0), waits = makespan(false, 0.5);
  ASSERT_GT(waits, compute);
  // One layer a chunk: four exchanges for each micro-batch and chunk of the slowest stage.
  EXPECT_GE(waits, compute + 0.5 * 4 * 2 * kMicroBatches - 1e-9);
  EXPECT_LE(makespan(true, 0.5), compute + (waits - compute) / 2);
}

}  // namespace
}  // namespace plancast
