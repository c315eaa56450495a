// Ops that take in tensors part by part: closed forms of kernels, messages and memory.

#include "compiler/loops/comm_loops.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/compiled_graph.h"
#include "tests/compiler/moe_layer.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kSeq = 512, kHidden = 1024, kSamples = 2;

// Every op is cut along the sequence; attention reads the keys and values of all.
PlanUnderTest Gathering(int64_t ranks) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.ByHand().Tp(ranks).MicroBatches(kSamples, 1);
  plan.Split("", "tp", {"seq"});
  return plan;
}

PlanUnderTest Turning(int64_t ranks) {
  PlanUnderTest plan = Gathering(ranks);
  LoopDirective& loop = (*plan.tree().Node("layers.*.attn.core"))->loop;
  loop.rotate["t"] = {"tp"};
  EXPECT_OK(loop.Settle());
  return plan;
}

// Bytes of the communications of a block, by kind.
std::map<CollectiveKind, std::vector<int64_t>> SentIn(const ExecutionGraph& graph,
                                                      absl::string_view name) {
  std::map<CollectiveKind, std::vector<int64_t>> sent;
  const Block& block = BlockNamed(graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    const CommSpec& comm = graph.comms[block.spec[t]];
    sent[comm.kind].push_back(comm.bytes);
  }
  return sent;
}

TEST(CommLoopsTest, ARingSendsWhatTheGatherReceives) {
  for (const int64_t ranks : {2, 4, 8}) {
    const ExecutionGraph graph = Compiled(Turning(ranks));
    // Keys and values of a rank's own positions, of as many heads as queries, in 2 bytes.
    const int64_t part = 2 * kSamples * kSeq / ranks * kHidden * 2;
    auto forward = SentIn(graph, "layer.F");
    EXPECT_EQ(forward[CollectiveKind::kPermute], std::vector<int64_t>(ranks - 1, part));
    EXPECT_TRUE(forward[CollectiveKind::kAllGather].empty());
    // Back they come again, and their gradients go along.
    auto backward = SentIn(graph, "layer.B");
    EXPECT_EQ(backward[CollectiveKind::kPermute], std::vector<int64_t>(2 * (ranks - 1), part));
    EXPECT_TRUE(backward[CollectiveKind::kReduceScatter].empty());
  }
}

TEST(CommLoopsTest, APartIsAsMuchWorkAsItsBusiestRankHas) {
  const int64_t ranks = 4;
  const ExecutionGraph graph = Compiled(Turning(ranks));
  const auto kernels = KernelsLabelled(graph, "layer.F", "attn.core");
  std::vector<KernelSpec> parts;
  for (const KernelSpec& kernel : kernels) {
    if (kernel.family == KernelFamily::kAttention) parts.push_back(kernel);
  }
  ASSERT_EQ(parts.size(), ranks);
  ASSERT_EQ(kernels.size(), 2 * ranks - 1);  // results are put together
  EXPECT_TRUE(parts[0].causal);
  const double all = 4.0 * kSamples * (kSeq / ranks) * (kSeq / ranks) * kHidden;
  EXPECT_NEAR(parts[0].flops, all / 2, all / 100);
  for (int64_t i = 1; i < ranks; ++i) {
    EXPECT_FALSE(parts[i].causal);
    EXPECT_EQ(parts[i].q_len, kSeq / ranks);
    EXPECT_EQ(parts[i].kv_len, kSeq / ranks);
    EXPECT_EQ(parts[i].flops, all);
  }
}

TEST(CommLoopsTest, PartsAreFewerThanTheWholeInMemory) {
  RuntimeParams params;
  const int64_t whole = ReplayMemory(Compiled(Gathering(8)), params)[0].allocated;
  const int64_t parts = ReplayMemory(Compiled(Turning(8)), params)[0].allocated;
  EXPECT_LT(parts, whole);
}

// Without turning, who holds a part sends it to all.
TEST(CommLoopsTest, PartsThatDoNotTurnAreSentToAll) {
  PlanUnderTest plan = Gathering(4);
  (*plan.tree().Node("layers.*.attn.core"))->loop.communicate = {{"k", "t"}, {"v", "t"}};
  auto forward = SentIn(Compiled(std::move(plan)), "layer.F");
  const int64_t part = 2 * kSamples * kSeq / 4 * kHidden * 2;
  EXPECT_EQ(forward[CollectiveKind::kBroadcast], std::vector<int64_t>(4, part));
}

// A product and the all-reduce of its result: each part leaves once it is made.
TEST(CommLoopsTest, ResultsLeaveInPieces) {
  const auto plan = [](int64_t pieces) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
    plan.Tp(4).MicroBatches(kSamples, 1);
    if (pieces > 0) {
      (*plan.tree().Node("layers.*.mlp.fc2"))->loop = {{{"y", "s"}}, {}, {{"s", pieces}}};
    }
    return plan;
  };
  const auto whole = SentIn(Compiled(plan(0)), "layer.F")[CollectiveKind::kAllReduce];
  const ExecutionGraph graph = Compiled(plan(8));
  const auto parts = SentIn(graph, "layer.F")[CollectiveKind::kAllReduce];
  ASSERT_EQ(whole.size(), 2);
  ASSERT_EQ(parts.size(), 1 + 8);
  EXPECT_EQ(parts[1], whole[1] / 8);
  const auto kernels = KernelsLabelled(graph, "layer.F", "mlp.fc2");
  ASSERT_EQ(kernels.size(), 8);
  for (const KernelSpec& kernel : kernels) EXPECT_EQ(kernel.m, kSamples * kSeq / 8);
  EXPECT_THAT(plan(7).Compile().status().message(), HasSubstr("do not divide into 7 pieces"));
}

// Experts over four ranks whose tokens come, and go back, in pieces of the slots that they have.
TEST(CommLoopsTest, TokensComeToTheirExpertsInPieces) {
  const MoeSizes sizes{64};
  const auto plan = [&](int64_t pieces) {
    PlanUnderTest plan(sizes.Dims());
    BodyWriter& body = plan.Segment("layers", 2);
    body.OutPort(WriteMoeLayer(body, body.InPort("x", {"batch", "seq", "hidden"})));
    plan.Dp(4).Ep(4).MicroBatches(1, 1);
    for (const char* path : {"layers.*.mlp.experts.fc1", "layers.*.mlp.experts.fc2"}) {
      if (pieces == 0) continue;
      LoopDirective& loop = (*plan.tree().Node(path))->loop;
      loop.pieces["r"] = pieces;
      EXPECT_OK(loop.Settle());
    }
    return plan;
  };
  const ExecutionGraph whole = Compiled(plan(0)), parts = Compiled(plan(4));
  for (const char* name : {"layers.F", "layers.B"}) {
    const auto before = SentIn(whole, name)[CollectiveKind::kAllToAll];
    const auto after = SentIn(parts, name)[CollectiveKind::kAllToAll];
    ASSERT_EQ(before.size(), 2) << name;
    ASSERT_EQ(after.size(), 8) << name;
    EXPECT_THAT(after, Each(before[0] / 4)) << name;
  }
  EXPECT_EQ(KernelsLabelled(parts, "layers.F", "mlp.experts.fc1").size(), 4);
  EXPECT_EQ(KernelsLabelled(parts, "layers.F", "mlp.experts.fc2").size(), 4);
  // A product waits for its own piece, a piece for none but what it is of.
  const Block& block = BlockNamed(parts, "layers.F");
  std::vector<int> came, made;
  for (int t = 0; t < block.size(); ++t) {
    if (block.label[t] == "all_to_all mlp.dispatch.d") came.push_back(t);
    if (block.label[t] == "mlp.experts.fc1") made.push_back(t);
  }
  ASSERT_EQ(came.size(), 4);
  for (int i = 0; i < 4; ++i) {
    const auto begin = block.deps.begin() + block.dep_begin[made[i]];
    const std::vector<int> deps(begin, block.deps.begin() + block.dep_begin[made[i] + 1]);
    EXPECT_THAT(deps, ::testing::Contains(came[i]));
    for (int later = i + 1; later < 4; ++later) {
      EXPECT_THAT(deps, ::testing::Not(::testing::Contains(came[later])));
    }
  }
  RuntimeParams params;
  EXPECT_EQ(ReplayMemory(parts, params)[0].allocated, ReplayMemory(whole, params)[0].allocated);
  EXPECT_THAT(plan(3).Compile().status().message(), HasSubstr("nothing that is read there"));
}

TEST(CommLoopsTest, WhatIsReadWholeIsNotTakenInPartByPart) {
  PlanUnderTest plan = Gathering(4);
  (*plan.tree().Node("layers.*.attn.core"))->loop.communicate = {{"q", "s"}};
  EXPECT_THAT(plan.Compile().status().message(), HasSubstr("nothing that is read there"));
  plan = Gathering(4);
  (*plan.tree().Node("layers.*.mlp"))->loop.communicate = {{"x", "s"}};
  EXPECT_THAT(plan.Compile().status().message(), HasSubstr("nothing that is read there"));
}

TEST(CommLoopsTest, OpsThatNeedAllAtOnceAreNoLoops) {
  const auto check = [](const char* rule, const char* factor) {
    const OpRulePtr op = *FindRule(rule);
    return std::string(CheckLoop(*op, *op->FindFactor(factor), 4).message());
  };
  EXPECT_EQ(check("attention", "t"), "");
  EXPECT_EQ(check("linear", "k"), "");
  EXPECT_EQ(check("linear", "s"), "");
  EXPECT_THAT(check("softmax", "t"), HasSubstr("before it goes on"));
  EXPECT_THAT(check("rms_norm", "h"), HasSubstr("before it goes on"));
  EXPECT_THAT(check("gated_linear_attention", "t"), HasSubstr("scan of all parts"));
  EXPECT_THAT(check("conv1d", "i"), HasSubstr("reads beyond"));
}

TEST(CommLoopsTest, OneRankHasNothingToTakeIn) {
  PlanUnderTest plan = Turning(1);
  EXPECT_THAT(plan.Compile().status().message(),
              HasSubstr("nothing that is read there is gathered so"));
}

}  // namespace
}  // namespace plancast
