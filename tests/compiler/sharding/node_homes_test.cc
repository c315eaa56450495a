// Homes of nodes: a plan whose nodes spell out what its zero and offload say is that plan,
// and mixtures move and hold what closed forms say.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/activations/offload_blocks.h"
#include "compiler/program_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/sharding/home_plans.h"
#include "tests/compiler/small_model.h"
#include "tests/executor/memory/event_replay.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int kParameters = static_cast<int>(MemoryKind::kParameters);
constexpr int kGradients = static_cast<int>(MemoryKind::kGradients);
constexpr int kOptimizer = static_cast<int>(MemoryKind::kOptimizer);
constexpr auto kGather = CollectiveKind::kAllGather;
constexpr auto kScatter = CollectiveKind::kReduceScatter;
constexpr auto kReduce = CollectiveKind::kAllReduce;

PlanUnderTest Small(int64_t dp, int64_t micro_batches = 1) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallModel());
  plan.Dp(dp).MicroBatches(1, micro_batches);
  plan.options().sync_each = true;
  return plan;
}

// The texts after all passes.
std::map<std::string, std::string> Dumps(PlanUnderTest& plan) {
  std::map<std::string, std::string> dumps;
  const auto graph = plan.Compile(
      [&](absl::string_view pass, const std::string& dump) { dumps[std::string(pass)] += dump; });
  EXPECT_OK(graph.status());
  if (graph.ok()) {
    dumps["graph"] = graph->DebugString();
    for (const Program& program : graph->programs) {
      dumps["host"] += std::to_string(program.host_bytes) + ";";
    }
  }
  return dumps;
}

// Parameters of modules on one device without parallelism.
struct Psi {
  double layers = 0, rest = 0;
};
Psi PsiOf() {
  const auto all = [](int64_t layers) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallModel(layers));
    return static_cast<double>(Compiled(plan).programs[0].static_bytes[kParameters]) / 2;
  };
  const double six = all(6), three = all(3);
  return {2 * (six - three), six - 2 * (six - three)};
}

std::vector<std::string> Modules(PlanUnderTest& plan) {
  std::vector<std::string> paths;
  for (const Segment& segment : plan.graph().segments) {
    const Body& body = plan.graph().bodies[segment.body];
    for (const TensorInfo& tensor : body.tensors) {
      if (tensor.kind != TensorInfo::Kind::kParameter) continue;
      paths.push_back(ModelGraph::PathOf(segment));
      break;
    }
  }
  return paths;
}

// --- Spelled out.

TEST(NodeHomesTest, WhatNodesSpellOutIsThePlan) {
  for (const int zero : {1, 2, 3}) {
    for (const bool elsewhere : {false, true}) {
      for (const bool overlaps : {false, true}) {
        PlanUnderTest plan = Small(4, 3), nodes = Small(4, 3);
        for (PlanUnderTest* p : {&plan, &nodes}) {
          p->Pp(elsewhere ? 2 : 1, elsewhere ? Schedule::k1f1b : Schedule::kNone);
          PlanOptions& o = p->options();
          o.sync_each = zero >= 2;
          o.hsdp = overlaps ? 2 : 0;
          if (overlaps) o.overlap = {Overlap::kGrad, Overlap::kParam};
          o.bucket_bytes = 100'000;
          p->profile().update.zero_grad = elsewhere;
          p->profile().update.fresh_gradients = !elsewhere;
          p->profile().data_parallel.shard_cut = overlaps ? ShardCut::kUnit : ShardCut::kRows;
          p->profile().data_parallel.sharded_master = !elsewhere;
          p->profile().data_parallel.root_unit = overlaps;
        }
        plan.options().zero = zero;
        for (const std::string& module : Modules(nodes)) nodes.Shard(module, zero);
        EXPECT_EQ(Dumps(plan), Dumps(nodes)) << zero << elsewhere << overlaps;
      }
    }
  }
}

TEST(NodeHomesTest, NodesThatTakeAllBackAreThePlanWithout) {
  PlanUnderTest plan = Small(4, 2), nodes = Small(4, 2);
  plan.options().sync_each = false;
  nodes.options().zero = 3;
  for (const std::string& module : Modules(nodes)) nodes.Shard(module, 0);
  EXPECT_EQ(Dumps(plan), Dumps(nodes));
}

TEST(NodeHomesTest, OffloadSpelledOutIsThePlans) {
  for (const int zero : {0, 1, 2, 3}) {
    PlanUnderTest plan = Small(4, 2), nodes = Small(4, 2);
    for (PlanUnderTest* p : {&plan, &nodes}) {
      p->options().sync_each = zero >= 2;
      p->profile().tensors.offload_least_bytes = 0;
    }
    PlanOptions& o = plan.options();
    o.zero = zero;
    o.offload = {Offload::kOptimizer, Offload::kActivations};
    if (zero == 3) o.offload.insert(Offload::kParameters);
    o.offload_layers = 6;
    for (const std::string& module : Modules(nodes)) {
      nodes.Shard(module, zero);
      nodes.Home(module, HomeKind::kState, zero >= 1 ? "shard(dp)+host" : "host");
      if (zero == 3) nodes.Home(module, HomeKind::kWeights, "shard(dp)+host");
    }
    nodes.Home("layers.*", HomeKind::kActivations, "host");
    EXPECT_EQ(Dumps(plan), Dumps(nodes)) << zero;
  }
}

TEST(NodeHomesTest, HomesDoNotCompileBodiesAgain) {
  Session session;
  PlanUnderTest plan = Small(4), nodes = Small(4);
  plan.Split("head", "tp", {});
  nodes.Split("head", "tp", {}).Shard("layers.*", 3).Shard("embedding", 2);
  ASSERT_OK(plan.Compile(session).status());
  const int64_t before = session.misses();
  ASSERT_OK(nodes.Compile(session).status());
  EXPECT_EQ(session.misses(), before);
}

// --- Closed forms of mixtures: fp32 gradients, Adam with a master: 12 bytes a parameter.

TEST(NodeHomesTest, SomeModulesAreSharded) {
  const Psi psi = PsiOf();
  for (const int zero : {1, 2, 3}) {
    for (const int64_t n : {2, 4}) {
      PlanUnderTest plan = Small(n);
      plan.Shard("layers.*", zero);
      const ExecutionGraph graph = Compiled(plan);
      auto moved = MovedByKind(graph);
      EXPECT_DOUBLE_EQ(moved[kGather], 2 * psi.layers * (zero == 3 ? 2 : 1));
      EXPECT_DOUBLE_EQ(moved[kScatter], 4 * psi.layers);
      EXPECT_DOUBLE_EQ(moved[kReduce], 4 * psi.rest);
      const auto& bytes = graph.programs[0].static_bytes;
      const auto share = [&](bool shared) { return shared ? psi.layers / n : psi.layers; };
      EXPECT_EQ(bytes[kParameters], 2 * (psi.rest + share(zero == 3)));
      EXPECT_EQ(bytes[kOptimizer], 12 * (psi.rest + share(true)));
      // Shards are made by the reductions.
      EXPECT_EQ(bytes[kGradients], 4 * (psi.rest + (zero >= 2 ? 0 : psi.layers)));
      plan.profile().update.zero_grad = true;
      EXPECT_EQ(Compiled(plan).programs[0].static_bytes[kGradients],
                4 * (psi.rest + share(zero >= 2)));
    }
  }
}

TEST(NodeHomesTest, SomeModulesAreNot) {
  const Psi psi = PsiOf();
  PlanUnderTest plan = Small(4);
  plan.options().zero = 3;
  plan.Home("layers.*", HomeKind::kState, "replicate");  // weights and gradients follow
  auto moved = MovedByKind(Compiled(plan));
  EXPECT_DOUBLE_EQ(moved[kGather], 2 * 2 * psi.rest);
  EXPECT_DOUBLE_EQ(moved[kScatter], 4 * psi.rest);
  EXPECT_DOUBLE_EQ(moved[kReduce], 4 * psi.layers);
}

TEST(NodeHomesTest, UnitsHaveUnlikeSizes) {
  // Of the six layers two shard all, one its feed-forward network alone, three nothing.
  const Psi psi = PsiOf();
  const double layer = psi.layers / 6, mlp = 2 * 64 * 256;
  PlanUnderTest plan = Small(4);
  plan.Shard("layers[0:2]", 3).Shard("layers.2.mlp", 3);
  const ExecutionGraph graph = Compiled(plan);
  auto moved = MovedByKind(graph);
  const double own = static_cast<double>(graph.programs[0].static_bytes[kParameters]);
  const double sharded = (2 * (psi.layers + psi.rest) - own) / (2 * 3.0 / 4);
  EXPECT_GE(sharded, 2 * layer + mlp);
  EXPECT_LE(sharded, 2 * layer + mlp + 64 + 256 + 2 * 64);  // with its biases, if any
  EXPECT_DOUBLE_EQ(moved[kGather], 2 * 2 * sharded);
  EXPECT_DOUBLE_EQ(moved[kScatter], 4 * sharded);
  EXPECT_DOUBLE_EQ(moved[kReduce], 4 * (psi.layers + psi.rest - sharded));
}

TEST(NodeHomesTest, GradientsInBucketsWaitForTheLastMicroBatch) {
  const Psi psi = PsiOf();
  PlanUnderTest plan = Small(4, 3);
  plan.Shard("layers.*", 2);
  auto moved = MovedByKind(Compiled(plan));
  EXPECT_DOUBLE_EQ(moved[kScatter], 3 * 4 * psi.layers);
  EXPECT_DOUBLE_EQ(moved[kReduce], 4 * psi.rest);
  plan.options().sync_whole_each = true;
  moved = MovedByKind(Compiled(plan));
  EXPECT_DOUBLE_EQ(moved[kReduce], 3 * 4 * psi.rest);
}

TEST(NodeHomesTest, BucketsHaveTheSizeOfTheirNode) {
  const Psi psi = PsiOf();
  const auto layer = static_cast<int64_t>(psi.layers / 6);
  const auto reductions = [](PlanUnderTest& plan) {
    std::vector<int64_t> bytes;
    const ExecutionGraph graph = Compiled(plan);
    for (const Instance& instance : graph.programs[0].instances) {
      const Block& block = graph.blocks[instance.block];
      if (block.name != "grad all_reduce") continue;
      for (const int32_t spec : block.spec) bytes.push_back(graph.comms[spec].bytes);
    }
    return bytes;
  };
  PlanUnderTest plan = Small(2);
  plan.options().overlap = {Overlap::kGrad};
  plan.options().sync_each = false;
  (*plan.tree().Node("layers.*"))->bucket_bytes = 2 * 4 * layer;
  // Head, pairs of layers, embedding.
  EXPECT_THAT(reductions(plan),
              testing::ElementsAre(testing::_, 8 * layer, 8 * layer, 8 * layer, testing::_));
  (*plan.tree().Node("layers.*"))->bucket_bytes = std::nullopt;
  (*plan.tree().Node("layers[0:3]"))->bucket_bytes = 4 * layer;
  // Those of the head and of three layers together, then one by one.
  const std::vector<int64_t> bytes = reductions(plan);
  EXPECT_THAT(bytes, testing::ElementsAre(testing::_, 4 * layer, 4 * layer, 4 * layer, testing::_));
  EXPECT_GT(bytes[0], 3 * 4 * layer);
}

TEST(NodeHomesTest, StateOfSomeModulesIsOnTheHost) {
  const Psi psi = PsiOf();
  PlanUnderTest plan = Small(4);
  plan.options().zero = 1;
  plan.Home("layers.*", HomeKind::kState, "shard(dp)+host");
  const ExecutionGraph graph = Compiled(plan);
  const Program& program = graph.programs[0];
  EXPECT_EQ(program.static_bytes[kOptimizer], 12 * psi.rest / 4);
  EXPECT_EQ(program.host_bytes, (12 + 4) * psi.layers / 4);
  auto moved = MovedByKind(graph);
  EXPECT_DOUBLE_EQ(moved[CollectiveKind::kCopyToHost], 4 * psi.layers / 4);
  EXPECT_DOUBLE_EQ(moved[CollectiveKind::kCopyToDevice], 2 * psi.layers / 4);
  // Both update.
  EXPECT_THAT(BlockNamed(graph, "optimizer").label,
              testing::IsSupersetOf({"adam", "adam on the host"}));
}

TEST(NodeHomesTest, WeightsOfSomeLayersRestOnTheHost) {
  const Psi psi = PsiOf();
  PlanUnderTest plan = Small(4);
  plan.options().zero = 3;
  plan.Home("layers[0:3]", HomeKind::kWeights, "shard(dp)+host");
  const ExecutionGraph graph = Compiled(plan);
  EXPECT_EQ(graph.programs[0].host_bytes, 2 * (psi.layers / 2) / 4);
  EXPECT_EQ(graph.programs[0].static_bytes[kParameters], 2 * (psi.layers / 2 + psi.rest) / 4);
  EXPECT_DOUBLE_EQ(MovedByKind(graph)[CollectiveKind::kCopyToDevice], 2 * 2 * (psi.layers / 2) / 4);
}

TEST(NodeHomesTest, ActivationsOfSomeLayersGoToTheHost) {
  const auto out = [](const std::string& node, bool plan_offloads) {
    PlanUnderTest plan = Small(1);
    plan.profile().tensors.offload_least_bytes = 0;
    if (plan_offloads) plan.options().offload = {Offload::kActivations};
    if (!node.empty()) {
      plan.Home(node, HomeKind::kActivations, plan_offloads ? "device" : "host");
    }
    return MovedByKind(Compiled(plan))[CollectiveKind::kCopyToHost];
  };
  const double one = out("layers.0", false);
  EXPECT_GT(one, 0);
  EXPECT_DOUBLE_EQ(out("layers[0:3]", false), 3 * one);
  EXPECT_DOUBLE_EQ(out("layers[::2]", false), 3 * one);
  EXPECT_DOUBLE_EQ(out("", true), 5 * one);  // all but the last
  EXPECT_DOUBLE_EQ(out("layers[0:2]", true), 3 * one);
}

// Of the head the loss reads what was kept at once: it goes out and comes straight back.
TEST(NodeHomesTest, SoDoThoseOfModulesOutsideOfLists) {
  PlanUnderTest plan = Small(1), plain = Small(1);
  for (PlanUnderTest* p : {&plain, &plan}) p->profile().tensors.offload_least_bytes = 0;
  plan.Home("head", HomeKind::kActivations, "host");
  const ExecutionGraph graph = Compiled(plan);
  int64_t kept = 0;
  for (const KeptTensor& tensor : KeptTensors(BlockNamed(Compiled(plain), "head.F"), 0)) {
    kept += tensor.bytes;
  }
  EXPECT_GT(kept, 0);
  auto moved = MovedByKind(graph);
  EXPECT_EQ(moved[CollectiveKind::kCopyToHost], kept);
  EXPECT_EQ(moved[CollectiveKind::kCopyToDevice], kept);
}

// --- Every home takes effect.

TEST(NodeHomesTest, EachHomeThatIsSaidChangesThePlan) {
  const std::map<HomeKind, std::vector<std::string>> homes = {
      {HomeKind::kWeights, {"shard(dp)", "shard(dp)+host"}},
      {HomeKind::kGradients, {"shard(dp)"}},
      {HomeKind::kState, {"shard(dp)", "host", "shard(dp)+host"}},
      {HomeKind::kActivations, {"host"}}};
  PlanUnderTest plain = Small(4);
  plain.profile().tensors.offload_least_bytes = 0;
  const std::string without = Dumps(plain)["graph"];
  for (const auto& [kind, words] : homes) {
    for (const std::string& home : words) {
      for (const char* node : {"layers.*", "layers.0", "layers[2:4]"}) {
        PlanUnderTest plan = Small(4);
        plan.profile().tensors.offload_least_bytes = 0;
        plan.Home(node, kind, home);
        EXPECT_NE(Dumps(plan)["graph"], without) << kHomeKindNames[kind] << ": " << home;
      }
    }
  }
}

// One rank shards nothing over dp: beside layers on the host its gradients are whole.
TEST(NodeHomesTest, GradientsThatOneRankWouldShardAreGivenUp) {
  PlanUnderTest plan = Small(1, 2);
  Homes(plan, "layers.*", "host", 3).Home("embedding", HomeKind::kGradients, "shard(dp)");
  const ExecutionGraph graph = Compiled(plan);
  const std::vector<ReplayedEvent> events = ReplayEvents(graph, 0);
  EXPECT_EQ(events.back().live.of[kGradients], graph.programs[0].static_bytes[kGradients]);
}

// --- Bad input.

TEST(NodeHomesTest, WhatCannotBeIsRefused) {
  PlanUnderTest act = Small(4);
  act.Home("layers.*.mlp", HomeKind::kActivations, "host");
  EXPECT_THAT(Refused(act), HasSubstr("goes together: say it at `layers.*`."));
  PlanUnderTest nothing = Small(4);
  nothing.Home("embedding", HomeKind::kActivations, "host");
  EXPECT_THAT(Refused(nothing), HasSubstr("`embedding`: `activations: host` has no effect"));
  PlanUnderTest none = Small(4);
  none.Home("layers.*.attn.core", HomeKind::kWeights, "shard(dp)");
  EXPECT_THAT(Refused(none), HasSubstr("`layers.*.attn.core`: `weights: shard(dp)` is the home of "
                                       "nothing: there are no parameters below."));
  PlanUnderTest bucket = Small(4);
  bucket.Shard("layers.*", 2);
  (*bucket.tree().Node("layers.*"))->bucket_bytes = 1 << 20;
  EXPECT_THAT(Refused(bucket), HasSubstr("`layers.*`: `bucket` has no effect"));
  PlanUnderTest joined = Small(4);
  joined.Recomputing(Recompute::kFull).Home("layers.*", HomeKind::kActivations, "host");
  joined.options().recompute_joined = 2;
  EXPECT_THAT(Refused(joined), HasSubstr("`activations: host` of `layers.*` where 2 layers run"));
  PlanUnderTest cut = Small(4);
  cut.Split("layers.*.mlp", "dp", {"ffn"}).Home("layers.*.mlp.fc1", HomeKind::kState, "shard(dp)");
  EXPECT_THAT(Refused(cut), HasSubstr("`split` cuts all weights below over the ranks of `dp` "
                                      "already, and leaves no copies."));
  TransformerConfig tied = SmallModel();
  tied.tied_embeddings = true;
  PlanUnderTest embedding = PlanUnderTest::Of(tied);
  embedding.Dp(4).Shard("embedding", 3);
  EXPECT_THAT(Refused(embedding), HasSubstr("share a weight, and nodes give it two homes"));
  PlanUnderTest buckets = PlanUnderTest::Of(tied);
  (*buckets.Dp(4).tree().Node("embedding"))->bucket_bytes = 1000;
  EXPECT_THAT(Refused(buckets), HasSubstr("bucket 1KB; "));
}

}  // namespace
}  // namespace plancast
