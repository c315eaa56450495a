#include "compiler/bind/bind.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TransformerConfig Small(int64_t kv_heads = 8) {
  TransformerConfig config;
  config.name = "small";
  config.layers = 12;
  config.hidden = 64;
  config.heads = 8;
  config.kv_heads = kv_heads;
  config.ffn = 256;
  config.vocab = 1000;
  config.seq = 16;
  return config;
}

absl::StatusOr<BoundModel> BindPlan(PlanUnderTest& plan) {
  return Bind(plan.graph(), plan.tree(), plan.options());
}

// `layers[0:4] head`, one text a virtual stage.
std::vector<std::string> StagesOf(const BoundModel& bound) {
  std::vector<std::string> texts;
  for (const std::vector<StageRun>& runs : bound.stages) {
    std::string text;
    for (const StageRun& run : runs) {
      const Segment& segment = bound.graph.segments[run.segment];
      text += (text.empty() ? "" : " ") + segment.path;
      if (segment.repeat == 1) continue;
      text += "[" + std::to_string(run.layer_begin) + ":" +
              std::to_string(run.layer_begin + run.count) + "]";
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(BindTest, TheBatchIsThatOfAllDataParallelRanks) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan.Dp(4).MicroBatches(2, 1)));
  EXPECT_EQ(bound.graph.dims[*bound.graph.FindDim("batch")].size, 8);
}

TEST(BindTest, AxesFollowTheOrderFastestLast) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Dp(2).Tp(4).Pp(3);
  ASSERT_OK_AND_ASSIGN(BoundModel bound, BindPlan(plan));
  EXPECT_EQ(bound.mesh.DebugString(), "pp=3 dp=2 tp=4");
  plan.options().order = {"pp", "dp", "tp", "cp", "ep"};
  ASSERT_OK_AND_ASSIGN(bound, BindPlan(plan));
  EXPECT_EQ(bound.mesh.DebugString(), "tp=4 dp=2 pp=3");
}

TEST(BindTest, LayersAreDealtToStagesAndTheRestStaysAtTheEnds) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan.Pp(3)));
  EXPECT_EQ(StagesOf(bound), (std::vector<std::string>{"embedding layers[0:4]", "layers[4:8]",
                                                       "layers[8:12] head"}));
}

TEST(BindTest, RunsOfOneListAreCountedOnAndShareTheirBodies) {
  TransformerConfig config = Small();
  config.layers = 5;
  config.window = 4;
  config.window_pattern = "wwf";  // wwfww
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.options().pp = 2;
  plan.options().layout = {4, 1};
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan));
  std::vector<std::vector<int64_t>> runs;  // bound body, first layer, layers
  for (const std::vector<StageRun>& stage : bound.stages) {
    for (const StageRun& run : stage) runs.push_back({run.bound_body, run.layer_begin, run.count});
  }
  EXPECT_EQ(runs, (std::vector<std::vector<int64_t>>{
                      {0, 0, 1}, {1, 0, 2}, {2, 2, 1}, {1, 3, 1}, {1, 4, 1}, {4, 0, 1}}));
}

TEST(BindTest, ChunksAreDealtRoundTheStages) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan.Pp(2, Schedule::kInterleaved, 2)));
  EXPECT_EQ(StagesOf(bound), (std::vector<std::string>{"embedding layers[0:3]", "layers[3:6]",
                                                       "layers[6:9]", "layers[9:12] head"}));
}

TEST(BindTest, StagesMayBeUneven) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Pp(3).options().layout = {3, 5, 4};
  ASSERT_OK_AND_ASSIGN(BoundModel bound, BindPlan(plan));
  EXPECT_EQ(StagesOf(bound)[1], "layers[3:8]");
  plan.options().layout = {3, 5, 5};
  EXPECT_THAT(BindPlan(plan).status().message(),
              HasSubstr("`layout` places 13 layers and the model has 12"));
}

TEST(BindTest, FullRecomputeOfSomeLayersSplitsTheRun) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Pp(3).Recomputing(Recompute::kFull, 1);
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan));
  EXPECT_EQ(StagesOf(bound)[1], "layers[4:5] layers[5:8]");
  const std::vector<StageRun>& runs = bound.stages[1];
  EXPECT_TRUE(bound.bodies[runs[0].bound_body].replays[0]);
  EXPECT_FALSE(bound.bodies[runs[1].bound_body].replays[0]);
}

TEST(BindTest, SelectiveRecomputeTakesTheAttentionOnly) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan.Recomputing(Recompute::kSelective)));
  const std::vector<OpNode>& ops = bound.graph.bodies[1].ops;
  for (size_t o = 0; o < ops.size(); ++o) {
    const bool again = static_cast<bool>(bound.bodies[1].replays[o]);
    EXPECT_EQ(again, ops[o].name == "attn.core") << ops[o].name;
  }
}

TEST(BindTest, AxesAreCutWhereKeyHeadsAreFewer) {
  PlanUnderTest plan = PlanUnderTest::Of(Small(2));
  plan.Tp(8).Split("", "tp", {"heads", "ffn", "vocab"});
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan));
  EXPECT_EQ(bound.mesh.DebugString(), "pp=1 dp=1 tp.0=2 tp.1=4");
}

// ---- mistakes ----

TEST(BindTest, AnAxisThatIsNotThereIsNamedWithThoseThatAre) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Tp(2).Split("layers.*.mlp", "tpp", {"ffn"});
  EXPECT_THAT(BindPlan(plan).status().message(),
              AllOf(HasSubstr("no mesh axis `tpp`; the mesh has `pp` (1), `dp` (1), `tp` (2)"),
                    HasSubstr("Did you mean `tp`?")));
}

TEST(BindTest, AModelOfOneLayerIsAListOfOne) {
  TransformerConfig config = Small();
  config.layers = 1;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Tp(2).Split("layers.*.mlp.fc1", "tp", {"ffn"});
  ASSERT_OK_AND_ASSIGN(const BoundModel bound, BindPlan(plan));
  EXPECT_THAT(bound.DebugString(), HasSubstr("virtual stage 0: embedding layers[0:1] head"));
}

TEST(BindTest, ADimThatIsNotThereIsNamed) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Tp(2).Split("layers.*.mlp", "tp", {"fnn"});
  EXPECT_THAT(BindPlan(plan).status().message(),
              AllOf(HasSubstr("no dim `fnn` to split"), HasSubstr("Did you mean `ffn`?")));
}

TEST(BindTest, ADimThatDoesNotDivideNamesTheSizesThatWork) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Tp(3).Split("", "tp", {}).Split("layers.*.mlp.fc1", "tp", {"ffn"});
  EXPECT_THAT(BindPlan(plan).status().message(),
              AllOf(HasSubstr("`layers.*.mlp.fc1` cannot shard dim `ffn` (256) over axis `tp` of "
                              "size 3: 256 is not divisible by 3"),
                    HasSubstr("Sizes that work: 1, 2, 4")));
}

TEST(BindTest, HeadsThatDoNotDivideSaySo) {
  PlanUnderTest plan = PlanUnderTest::Of(Small(2));
  plan.Tp(16).Split("", "tp", {"heads"});
  EXPECT_THAT(BindPlan(plan).status().message(), HasSubstr("cannot shard dim `heads` (8 in 2"));
}

TEST(BindTest, AFactorOfTheRuleCanBeNamed) {
  PlanUnderTest plan = PlanUnderTest::Of(Small());
  plan.Tp(2).Split("layers.*.mlp.fc1", "tp", {".q"});
  EXPECT_FALSE(BindPlan(plan).ok());
  plan.Split("layers.*.mlp.fc1", "tp", {".k"});
  EXPECT_OK(BindPlan(plan).status());
}

}  // namespace
}  // namespace plancast
