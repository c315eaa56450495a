// An axis that is cut in a hierarchy: what each level moves by closed forms, layers that are cut
// differently, and what cannot be cut so.

#include <string>
#include <vector>

#include "compiler/bind/bind.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr int64_t kBatch = 2, kSeq = 16, kHidden = 64, kFfn = 256, kHeadDim = 8, kHeads = 8;
constexpr int64_t kBf16 = 2, kFp32 = 4;
constexpr int64_t kStream = kBf16 * kBatch * kSeq * kHidden;
constexpr int64_t kKeys = kBf16 * kBatch * kSeq * kHeads * kHeadDim;  // also of values
constexpr int64_t kHeadWeights = kHidden * kHeads * kHeadDim;         // of each of q, k, v, proj

using Lines = std::vector<std::string>;

PlanUnderTest ByHand(int64_t kv_heads = kHeads, int64_t heads_per_kv = 1) {
  PlanUnderTest plan({{"seq", kSeq},
                      {"kv_seq", kSeq},
                      {"hidden", kHidden},
                      {"kv_heads", kv_heads},
                      {"heads_per_kv", heads_per_kv},
                      {"head_dim", kHeadDim},
                      {"ffn", kFfn}});
  plan.MicroBatches(kBatch, 1).ByHand();
  return plan;
}

// Two products with a function between them, twice.
PlanUnderTest Pair(const Lines& over_tp) {
  PlanUnderTest plan = ByHand();
  BodyWriter& body = plan.Segment("m", 2);
  int x = body.InPort("x", {"batch", "seq", "hidden"});
  x = body.Op1("fc1", "linear", {x}, {{"n", "ffn"}});
  x = body.Op1("act", "gelu", {x});
  body.OutPort(body.Op1("fc2", "linear", {x}, {{"k", "ffn"}}));
  plan.Tp(8).Split("m", "tp", over_tp);
  return plan;
}

PlanUnderTest Attention(const Lines& over_tp, int64_t kv_heads = kHeads) {
  PlanUnderTest plan = ByHand(kv_heads, kHeads / kv_heads);
  BodyWriter& body = plan.Segment("m", 2);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  const std::vector<int> qkv = body.Op("qkv", "qkv_linear", {x});
  body.OutPort(body.Op1("proj", "out_linear", {body.Op1("core", "attention", qkv)}));
  plan.Tp(8).Split("m", "tp", over_tp);
  return plan;
}

void ExpectMoves(PlanUnderTest& plan, const Lines& forward, const Lines& backward,
                 const Lines& gradients) {
  const Moves moves = plan.Traffic();
  EXPECT_THAT(moves.forward, UnorderedElementsAreArray(forward)) << "forward";
  EXPECT_THAT(moves.backward, UnorderedElementsAreArray(backward)) << "backward";
  EXPECT_THAT(moves.gradients, UnorderedElementsAreArray(gradients)) << "gradients";
}

std::string MeshOfPlan(PlanUnderTest& plan) {
  const absl::StatusOr<BoundModel> bound = Bind(plan.graph(), plan.tree(), plan.options());
  return bound.ok() ? bound->mesh.DebugString() : std::string(bound.status().message());
}

// ---- what each level moves ----

// Columns and rows over the outer four, the sequence over the inner two: the outer ones sum the
// half of the stream that they have, the inner ones the gradients of the weights that they share.
TEST(SplitHierarchyTest, AColumnAndARowWithTheSequenceInside) {
  PlanUnderTest plan = Pair({"ffn/4", "seq/2"});
  EXPECT_EQ(MeshOfPlan(plan), "pp=1 dp=1 tp.0=4 tp.1=2");
  ExpectMoves(plan, {AllReduce("tp.0", kStream / 2)}, {AllReduce("tp.0", kStream / 2)},
              {AllReduce("tp.1", kFp32 * 2 * 2 * kHidden * kFfn / 4)});
}

TEST(SplitHierarchyTest, TheSequenceOutside) {
  PlanUnderTest plan = Pair({"seq/2", "ffn/4"});
  EXPECT_EQ(MeshOfPlan(plan), "pp=1 dp=1 tp.0=2 tp.1=4");
  ExpectMoves(plan, {AllReduce("tp.1", kStream / 2)}, {AllReduce("tp.1", kStream / 2)},
              {AllReduce("tp.0", kFp32 * 2 * 2 * kHidden * kFfn / 4)});
}

// Heads over the outer four; of the inner two each has half of the queries and all of the keys,
// which are gathered, and kept in their smaller form.
TEST(SplitHierarchyTest, AttentionOverHeadsAndQueries) {
  PlanUnderTest plan = Attention({"heads/4", "seq/2"});
  const std::string gather = AllGather("tp.1", kKeys / 4);
  const std::string scatter = ReduceScatter("tp.1", kKeys / 4);
  ExpectMoves(plan, {gather, gather, AllReduce("tp.0", kStream / 2)},
              {gather, gather, scatter, scatter, AllReduce("tp.0", kStream / 2)},
              {AllReduce("tp.1", kFp32 * 2 * 4 * kHeadWeights / 4)});
}

// Two levels over one dim are one cut.
TEST(SplitHierarchyTest, LevelsOverTheSameDimMoveWhatOneMoves) {
  const Moves one = Pair({"ffn"}).Traffic(), two = Pair({"ffn/4", "ffn/2"}).Traffic();
  const auto whole = [](Lines lines) {
    for (std::string& line : lines) {
      const size_t at = line.find("tp.0*tp.1");
      if (at != std::string::npos) line.replace(at, 9, "tp");
    }
    return lines;
  };
  EXPECT_EQ(whole(two.forward), one.forward);
  EXPECT_EQ(whole(two.backward), one.backward);
  EXPECT_EQ(whole(two.gradients), one.gradients);
}

// A level that cuts nothing holds copies.
TEST(SplitHierarchyTest, ALevelMayCutNothing) {
  PlanUnderTest plan = Pair({"ffn/4", "/2"});
  ExpectMoves(plan, {AllReduce("tp.0", kStream)}, {AllReduce("tp.0", kStream)}, {});
}

TEST(SplitHierarchyTest, OneLevelMayLeaveItsNumberOut) {
  for (const Lines& levels : {Lines{"heads", "seq/2"}, Lines{"heads/4", "seq"}}) {
    EXPECT_EQ(Attention(levels).Compile()->DebugString(),
              Attention({"heads/4", "seq/2"}).Compile()->DebugString());
  }
}

TEST(SplitHierarchyTest, ALevelOverTheWholeAxisIsNoLevel) {
  for (const int64_t kv_heads : {8, 4, 2, 1}) {
    EXPECT_EQ(Attention({"heads/8"}, kv_heads).Compile()->DebugString(),
              Attention({"heads"}, kv_heads).Compile()->DebugString())
        << kv_heads;
  }
}

// What a level's ops lack goes to the next of its dims, and to none.
TEST(SplitHierarchyTest, ALevelHasDimsInOrderOfPreference) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(8).Split("", "tp", {"heads|ffn|vocab|seq/4", "seq/2"});
  const absl::StatusOr<BoundModel> bound = Bind(plan.graph(), plan.tree(), plan.options());
  ASSERT_OK(bound.status());
  const std::string text = bound->DebugString();
  EXPECT_THAT(text, HasSubstr("mlp.fc1: s(seq)/tp.1 n(ffn)/tp.0"));
  EXPECT_THAT(text, HasSubstr("attn.core: g(kv_heads)/tp.0 s(seq)/tp.1"));
  EXPECT_THAT(text, HasSubstr("mlp.norm: s(seq)/tp.0*tp.1"));
  EXPECT_THAT(text, HasSubstr("head.logits: s(seq)/tp.1 n(vocab)/tp.0"));
}

// ---- the mesh is the common refinement of all cuts ----

TEST(SplitHierarchyTest, NodesThatCutOtherwiseShareOneMesh) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(8).Split("layers.*.attn", "tp", {"heads/4", "seq/2"});
  plan.Split("layers.*.mlp", "tp", {"ffn/2", "seq/4"});
  EXPECT_EQ(MeshOfPlan(plan), "pp=1 dp=1 tp.0=2 tp.1=2 tp.2=2");
  // The root cuts over all three.
  const absl::StatusOr<BoundModel> bound = Bind(plan.graph(), plan.tree(), plan.options());
  EXPECT_THAT(bound->DebugString(),
              AllOf(HasSubstr("attn.qkv: s(seq)/tp.2"), HasSubstr("s(seq)/tp.1*tp.2 n(ffn)/tp.0"),
                    HasSubstr("head.logits: n(vocab)/tp.0*tp.1*"
                              "tp.2")));
}

TEST(SplitHierarchyTest, KeyHeadsCutALevelToo) {
  PlanUnderTest plan = Attention({"heads/4", "seq/2"}, /*kv_heads=*/2);
  EXPECT_EQ(MeshOfPlan(plan), "pp=1 dp=1 tp.0=2 tp.1=2 tp.2=2");
  PlanUnderTest both = Attention({"heads/4", "heads/2"}, /*kv_heads=*/2);
  EXPECT_EQ(MeshOfPlan(both), "pp=1 dp=1 tp.0=2 tp.1=2 tp.2=2");
}

TEST(SplitHierarchyTest, ShardGroupsAndLevelsCutOneAxis) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Dp(8).Tp(2).Zero1().Split("layers.*.mlp", "dp", {"batch/4", "seq/2"});
  plan.options().hsdp = 4;
  EXPECT_EQ(MeshOfPlan(plan), "pp=1 dp.0=2 dp.1=2 dp.2=2 tp=2");
}

// ---- layers that are cut differently ----

// From halves of the sequence on the inner two ranks to quarters on the inner four. The busiest
// device lacks its quarter, and on the way back both quarters of its half; an exchange among four
// is sized so that three quarters of it arrive.
TEST(SplitHierarchyTest, TheRelayoutBetweenLayersIsFoundAndNamed) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(8).MicroBatches(1, 1).Split("", "tp", {"heads|ffn|vocab/4", "seq/2"});
  plan.Split("layers[4:]", "tp", {"heads|ffn/2", "seq/4"});
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_EQ(graph.mesh.DebugString(), "pp=1 dp=1 tp.0=2 tp.1=2 tp.2=2");
  const int64_t stream = kBf16 * 512 * 1024;
  const auto moves = [&](absl::string_view name) {
    const Block& block = BlockNamed(graph, name);
    Lines lines;
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] == TaskKind::kComm) {
        lines.push_back(CommText(graph, graph.comms[block.spec[t]]));
      }
    }
    return lines;
  };
  const auto arrives = [](int64_t bytes) {
    return AllToAll("tp.1*tp.2", kBf16 * ((bytes / kBf16 * 4 + 2) / 3));
  };
  EXPECT_THAT(moves("relayout.F"), ElementsAre(arrives(stream / 4)));
  EXPECT_THAT(moves("relayout.B"), ElementsAre(arrives(stream / 2)));
}

// ---- stages with meshes of their own ----

PlanUnderTest TwoStages(int64_t tp, int64_t other_tp) {
  TransformerConfig config = SmallGpt();
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Pp(2).MicroBatches(4, 2);
  plan.options().stages = {StageOptions{1, tp}, StageOptions{1, other_tp}};
  plan.options().stages[1].first_device = tp;
  for (StageOptions& stage : plan.options().stages) stage.micro_batch = 4;
  plan.Tp(tp);
  EXPECT_OK(
      plan.tree().SetStages({{{"embedding", "layers[0:4]"}, {}}, {{"layers[4:8]", "head"}, {}}}));
  return plan;
}

TEST(SplitHierarchyTest, AStageNeedsTheLevelsOfItsOwnNodesAlone) {
  PlanUnderTest plan = TwoStages(8, 2);
  plan.Split("layers[0:4]", "tp", {"heads|ffn/4", "seq/2"});
  EXPECT_OK(plan.Compile().status());
  plan.Split("layers[2:6].mlp", "tp", {"ffn/4", "seq/2"});
  EXPECT_THAT(plan.Compile().status().message(),
              AllOf(HasSubstr("stage 1: `layers[2:6].mlp`: `ffn/4, seq/2` cuts axis `tp` into "
                              "4 x 2 parts, and it has 2 ranks"),
                    HasSubstr("leave one number out")));
  plan.Split("layers[2:6].mlp", "tp", {"ffn", "seq/2"});
  EXPECT_OK(plan.Compile().status());
}

// ---- mistakes ----

struct Mistake {
  const char* path;
  const char* axis;
  Lines entries;
  const char* message;
};

TEST(SplitHierarchyTest, MistakesAreNamedWithTheirNode) {
  const std::vector<Mistake> mistakes = {
      {"layers.*.mlp",
       "tp",
       {"ffn/4", "seq/4"},
       "`layers.*.mlp`: `ffn/4, seq/4` cuts axis `tp` into 4 x 4 parts, and it has 8 ranks. Write "
       "levels whose product is 8, or leave one number out"},
      {"layers.*.mlp",
       "tp",
       {"ffn/4"},
       "`ffn/4` cuts axis `tp` into 4 parts, and it has 8 ranks. Write levels whose product is 8; "
       "a last level `/2` cuts nothing."},
      {"layers.*.mlp", "tp", {"ffn/3", "seq"}, "into 3 parts, and it has 8 ranks"},
      {"layers.*.mlp", "tp", {"fnn/4", "seq/2"}, "no dim `fnn` to split"},
      {"layers.*.mlp", "tp", {"fnn/4", "seq/2"}, "Did you mean `ffn`?"},
      {"", "tp", {"haeds|ffn/4", "seq/2"}, "the root: no dim `haeds` to split"},
      {"layers.*.mlp",
       "tp",
       {"heads/4", "seq/2"},
       "`layers.*.mlp` splits `heads/4` over `tp`, which no op below can take: they can be cut "
       "along `seq`, `hidden`, `ffn`."},
      {"layers.*.mlp.norm",
       "tp",
       {"ffn"},
       "`layers.*.mlp.norm` splits `ffn` over `tp`, which no op below can take"},
      {"layers.*.mlp", "pp", {"ffn/2", "seq/2"}, "not supported yet: levels of `pp`"},
      {"layers.*.mlp.fc1", "tp", {"ffn/2", ".m/4"}, "no factor `m`"},
  };
  for (const Mistake& mistake : mistakes) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
    plan.Tp(8).Split(mistake.path, mistake.axis, mistake.entries);
    EXPECT_THAT(MeshOfPlan(plan), HasSubstr(mistake.message));
  }
}

TEST(SplitHierarchyTest, ASizeThatALevelDoesNotDivideNamesTheLevel) {
  TransformerConfig config = SmallGpt();
  config.ffn = 1026;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Tp(8).Split("", "tp", {"ffn/4", "seq/2"});
  EXPECT_THAT(MeshOfPlan(plan),
              HasSubstr("`layers.*.mlp.fc1` cannot shard dim `ffn` (1026) over level `ffn/4` of "
                        "axis `tp` of size 4: 1026 is not divisible by 4"));
}

TEST(SplitHierarchyTest, CutsWithoutACommonRefinementNameBothNodes) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Tp(12).Split("layers.*.attn", "tp", {"heads/4", "seq/3"});
  plan.Split("layers.*.mlp", "tp", {"ffn/3", "seq/4"});
  EXPECT_EQ(MeshOfPlan(plan),
            "axis `tp` of size 12 is cut into parts of 3 ranks by `heads/4, seq/3` of "
            "`layers.*.attn` and into parts of 4 by `ffn/3, seq/4` of `layers.*.mlp`, and neither "
            "divides the other. Use sizes that do.");
}

}  // namespace
}  // namespace plancast
