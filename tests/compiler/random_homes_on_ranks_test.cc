// Random plans with homes on one rank of an axis, beside nodes on some: folding knows of both.

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"

namespace plancast {
namespace {

PlanUnderTest DrawPlan(Dice& dice, bool places) {
  const int64_t pp = dice.Of<int64_t>({1, 1, 2});
  TransformerConfig config;
  config.name = "tiny";
  config.layers = 2 * pp;
  config.hidden = 32;
  config.heads = 4;
  config.ffn = 64;
  config.vocab = 120;
  config.seq = 16;
  config.max_positions = 16;
  config.tied_embeddings = dice.Maybe(3);
  config.parallel_residual = dice.Maybe(3);
  PlanUnderTest plan = PlanUnderTest::Of(config, dice.Maybe(2), dice.Maybe(2));
  plan.Dp(dice.Of<int64_t>({1, 2, 3})).Tp(dice.Of<int64_t>({1, 2, 4}));
  std::vector<std::string> over_tp = {"heads", "ffn", "vocab"};
  if (dice.Maybe(3)) over_tp.emplace_back("seq");
  plan.Split("", "tp", over_tp);
  plan.Pp(pp, pp == 1 ? Schedule::kNone : dice.Of<Schedule>({Schedule::k1f1b, Schedule::kGpipe}));
  plan.MicroBatches(1 + dice.Below(2), 1 + dice.Below(4));
  plan.Recomputing(dice.Of<Recompute>({Recompute::kNone, Recompute::kSelective, Recompute::kFull}));
  SoftwareProfile& profile = plan.profile();
  profile.update.grad_clip = dice.Maybe(2);
  profile.update.zero_grad = dice.Maybe(2);
  profile.kernels.wgrad_overlaps_tp = !dice.Maybe(3);
  profile.kernels.fuse_wgrad_accumulation = !dice.Maybe(3);
  profile.pipeline.p2p_blocking = dice.Maybe(3);
  PlanOptions& options = plan.options();
  options.bucket_bytes = dice.Of<int64_t>({1, 20'000, int64_t{1} << 40});
  if (dice.Maybe(2)) options.overlap.insert(Overlap::kGrad);
  if (dice.Maybe(2)) plan.Zero1();
  if (dice.Maybe(4)) {
    options.zero = dice.Of<int>({2, 3});
    options.sync_each = dice.Maybe(2);
  }
  const int64_t nodes = places ? 1 + dice.Below(4) : 0;
  for (int64_t n = 0; n < nodes; ++n) {
    const std::string axis = dice.Of<std::string>({"dp", "tp"});
    const int64_t size = axis == "dp" ? options.dp : options.tp;
    plan.On(dice.Of<std::string>({"layers.*.mlp", "layers.*.attn", "layers[0].mlp", "layers[::2]",
                                  "layers[-1].attn.core_attn", "embedding", "head",
                                  "layers.*.mlp.fc1"}),
            axis,
            size % 2 == 0 && dice.Maybe(2) ? absl::StrCat(dice.Below(2), "/2")
                                           : absl::StrCat(dice.Below(size)));
  }
  return plan;
}

// Homes on one rank of an axis, beside nodes on some ranks.
void DrawHomes(Dice& dice, PlanUnderTest& plan) {
  if (dice.Maybe(3)) plan.Split("", "tp", {});  // all weights are whole on its ranks
  plan.profile().update.fresh_gradients = dice.Maybe(2);
  plan.profile().data_parallel.shard_cut =
      dice.Of<ShardCut>({ShardCut::kParameter, ShardCut::kUnit, ShardCut::kRows});
  if (dice.Maybe(4)) plan.profile().data_parallel.shard_cut = ShardCut::kJoined;
  plan.profile().data_parallel.sharded_master = dice.Maybe(2);
  if (dice.Maybe(2)) plan.options().overlap.insert(Overlap::kParam);
  plan.options().sync_each = dice.Maybe(2);
  const int64_t nodes = 1 + dice.Below(3);
  for (int64_t n = 0; n < nodes; ++n) {
    const std::string axis = dice.Of<std::string>({"dp", "dp", "tp"});
    const int64_t size = axis == "dp" ? plan.options().dp : plan.options().tp;
    const std::string home = absl::StrCat("on(", axis, "=", dice.Below(size), ")");
    const std::string node = dice.Of<std::string>(
        {"layers.*", "layers[0]", "layers[::2]", "layers[1::2]", "head", "embedding", "*"});
    const auto zero = static_cast<int>(1 + dice.Below(3));
    for (const HomeKind kind : {HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState}) {
      plan.Home(node, kind, static_cast<int>(kind) + zero >= 3 ? home : "replicate");
    }
  }
}

class RandomHomesOnRanksTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slices, RandomHomesOnRanksTest, testing::Range(0, 4));

// Words for what a drawn home cannot be.
bool IsRefusedHome(const absl::Status& status) {
  for (const char* words : {"is not whole on all ranks", "share a weight", "share a parameter",
                            "are one parameter", "nothing to update", "leaves devices idle"}) {
    if (absl::StrContains(status.message(), words)) return true;
  }
  return false;
}

TEST_P(RandomHomesOnRanksTest, FoldedEqualsFlatBitForBit) {
  constexpr uint32_t kPlans = 400;
  const uint32_t first = 1 + static_cast<uint32_t>(GetParam()) * kPlans;
  std::cout << "seeds " << first << " to " << first + kPlans - 1 << "\n";
  int64_t placed = 0;
  for (uint32_t seed = first; seed < first + kPlans && !HasFailure(); ++seed) {
    Dice dice(seed);
    const bool places = dice.Maybe(3);
    PlanUnderTest plan = DrawPlan(dice, places);
    DrawHomes(dice, plan);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << plan.tree().ToJson() << " zero "
                                    << plan.options().zero << " dp " << plan.options().dp << " tp "
                                    << plan.options().tp << " pp " << plan.options().pp);
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);

    if (IsRefusedHome(graph.status())) continue;
    ASSERT_TRUE(graph.ok()) << graph.status();
    placed += graph->programs.size() > static_cast<size_t>(plan.options().pp);
    ExpectFoldedEqualsFlat(dice, *graph);
    const std::vector<ClassMemory> memory = ReplayMemory(*graph, RuntimeParams());
    for (size_t p = 0; p < graph->programs.size(); ++p) {
      EXPECT_EQ(memory[p].allocated, ReferencePeak(*graph, static_cast<int32_t>(p)));
      if (places) continue;  // not yet so where nodes are on some ranks
      for (const MemoryKind kind : {MemoryKind::kParameters, MemoryKind::kGradients}) {
        EXPECT_EQ(Left(*graph, graph->programs[p], kind), 0) << graph->programs[p].name;
      }
    }
  }
  std::cout << placed << " plans with several places\n";
  EXPECT_GT(placed, 30);
}

}  // namespace
}  // namespace plancast
