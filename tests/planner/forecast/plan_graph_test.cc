#include "planner/forecast/plan_graph.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;

class PlanGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "small";
    config.layers = 4;
    config.hidden = 64;
    config.heads = config.kv_heads = 4;
    config.head_dim = 16;
    config.ffn = 256;
    config.vocab = 1000;
    config.seq = 32;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    job_.global_batch = 16;
    Strategy("tp=2,pp=2");
  }
  void Strategy(const std::string& text) {
    ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm(text));
    job_.strategy = StrategyTree::FromShortForm(form);
  }
  PlanGraph Compile(const char* machine = "dgx-a100-80g:1",
                    const PassObserver& observer = nullptr) {
    const absl::StatusOr<Machine> made = MachineFromPreset(machine);
    EXPECT_TRUE(made.ok()) << made.status();
    absl::StatusOr<PlanGraph> plan =
        DrawAndCompile(job_, *made, session_, /*pricing=*/nullptr, observer);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : PlanGraph();
  }
  // A plan of another session, which can share nothing.
  std::string Fresh() {
    Session session;
    const absl::StatusOr<Machine> machine = MachineFromPreset("dgx-a100-80g:1");
    return DrawAndCompile(job_, *machine, session)->execution->DebugString();
  }

  Job job_;
  Session session_;
};

TEST_F(PlanGraphTest, SchedulesShareBodies) {
  Compile();
  const int64_t misses = session_.misses();
  Strategy("tp=2,pp=2,vpp=2");
  const PlanGraph interleaved = Compile();
  EXPECT_EQ(session_.misses(), misses + 1);  // the execution graph
  EXPECT_EQ(interleaved.execution->DebugString(), Fresh());
}

TEST_F(PlanGraphTest, PlansWithAndWithoutDataParallelismShareBodies) {
  for (const char* rest : {"", ",sp", ",recompute=full", ",recompute=selective", ",mb=2"}) {
    Strategy(absl::StrCat("dp=2,tp=2,pp=2", rest));
    Compile();
    const int64_t misses = session_.misses();
    Strategy(absl::StrCat("dp=1,tp=2,pp=4", rest));
    const PlanGraph alone = Compile();
    EXPECT_EQ(session_.misses(), misses + 1) << rest;  // the execution graph
    // With an observer the passes run for this plan alone.
    const PlanGraph own = Compile("dgx-a100-80g:1", [](absl::string_view, const std::string&) {});
    EXPECT_EQ(alone.execution->DebugString(), own.execution->DebugString()) << rest;
  }
}

TEST_F(PlanGraphTest, TheSamePlanIsCompiledOnce) {
  const PlanGraph first = Compile();
  const int64_t misses = session_.misses();
  EXPECT_EQ(Compile().execution, first.execution);
  EXPECT_EQ(Compile("dgx-h100:1").execution, first.execution);
  EXPECT_EQ(session_.misses(), misses);
}

TEST_F(PlanGraphTest, PassesAreSeenInOrder) {
  std::vector<std::string> passes;
  std::string lowered;
  const PlanGraph plan =
      Compile("dgx-a100-80g:1", [&](absl::string_view pass, const std::string& dump) {
        passes.emplace_back(pass);
        EXPECT_FALSE(dump.empty()) << pass;
        lowered = dump;
      });
  EXPECT_THAT(passes, ElementsAre("bind", "differentiate", "partition", "relayout", "synchronise",
                                  "schedule", "lower"));
  EXPECT_EQ(lowered, plan.execution->DebugString());
  EXPECT_EQ(lowered, Compile().execution->DebugString());
}

TEST_F(PlanGraphTest, WhateverAPlanSaysMakesAnotherGraph) {
  std::vector<std::string> texts;
  for (const char* strategy :
       {"tp=2,pp=2", "tp=2,pp=2,sp", "tp=2,pp=2,zero=1", "tp=2,pp=2,recompute=full",
        "tp=2,pp=2,recompute=full:1", "tp=2,pp=2,recompute=selective", "tp=2,pp=2,attn=unfused",
        "tp=2,pp=2,vpp=2", "tp=2,pp=2,schedule=gpipe", "tp=2,pp=2,layout=1+3", "tp=2,pp=2,mb=2",
        "tp=2,pp=2,overlap=grad", "tp=2,pp=2,zero=1,overlap=param"}) {
    Strategy(strategy);
    // Sharing with the plans before changes nothing.
    texts.push_back(Compile().execution->DebugString());
    EXPECT_EQ(texts.back(), Fresh()) << strategy;
    for (size_t i = 0; i + 1 < texts.size(); ++i) {
      EXPECT_NE(texts[i], texts.back()) << strategy << " is like plan " << i;
    }
  }
}

TEST_F(PlanGraphTest, TypesAreNotMixedUp) {
  const std::string bf16 = Compile().execution->DebugString();
  job_.dtype = DType::kFp32;
  const std::string fp32 = Compile().execution->DebugString();
  EXPECT_NE(bf16, fp32);
  EXPECT_EQ(fp32, Fresh());
}

TEST_F(PlanGraphTest, ProfilesOfOneNameAreNotMixedUp) {
  Strategy("tp=2,pp=2,sp");
  Compile();
  // A user's own file may keep the name.
  for (bool* flag :
       {&job_.profile.tensors.sp_saves_sharded, &job_.profile.kernels.wgrad_overlaps_tp,
        &job_.profile.pipeline.p2p_blocking, &job_.profile.update.grad_clip}) {
    *flag = !*flag;
    EXPECT_EQ(Compile().execution->DebugString(), Fresh());
  }
}

TEST_F(PlanGraphTest, EveryOptionIsInTheKey) {
  for (const char* strategy :
       {"recompute=full", "recompute=uniform:2", "recompute=every:2", "recompute=full:1"}) {
    Strategy(strategy);
    EXPECT_EQ(Compile().execution->DebugString(), Fresh()) << strategy;
  }
}

TEST_F(PlanGraphTest, TheVocabularyIsPaddedForTheRanks) {
  const PlanGraph plan = Compile();
  ASSERT_OK_AND_ASSIGN(const int vocab, plan.graph->FindDim("vocab"));
  EXPECT_EQ(plan.graph->dims[vocab].size, 1024);  // 128 * tp divides it
  EXPECT_EQ(plan.graph->vocab, 1000);
}

TEST_F(PlanGraphTest, GraphsAreValid) {
  for (const char* strategy : {"tp=4,sp,zero=1", "pp=4,vpp=1,recompute=full", "tp=2,pp=2,vpp=2"}) {
    Strategy(strategy);
    EXPECT_OK(Compile().execution->Verify());
  }
}

}  // namespace
}  // namespace plancast
