#include "compiler/graph_workspace.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/strategy/schedule/random_table.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

PlanUnderTest Small() { return PlanUnderTest::Of(SmallGpt()); }

TEST(GraphWorkspace, MakesTheGraphOfTheCompiler) {
  Session session;
  GraphWorkspace workspace;
  PlanUnderTest plan = Small();
  plan.Pp(4).Tp(2).MicroBatches(1, 8);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile(session));
  for (int times = 0; times < 3; ++times) {
    ASSERT_OK(workspace.Compile(plan.Request(), session));
    EXPECT_EQ(workspace.graph().DebugString(), graph.DebugString());
  }
}

// What plans of one order of passes may differ in.
void Vary(std::mt19937_64& random, PlanUnderTest& plan) {
  plan.Dp(int64_t{1} << random() % 3).Tp(int64_t{1} << random() % 3);
  if (random() % 2 == 0) plan.Sp();
  if (random() % 2 == 0) plan.Zero1();
  plan.Recomputing(static_cast<Recompute>(random() % 3), random() % 4 == 0 ? 1 : -1);
  PlanOptions& o = plan.options();
  if (random() % 2 == 0) {
    o.zero = static_cast<int>(random() % 4);
    o.prefetch = static_cast<int64_t>(random() % 3);
    o.reshard = random() % 3 != 0;
    if (o.dp == 4 && random() % 2 == 0) o.hsdp = 2;
    plan.profile().data_parallel.shard_cut = static_cast<ShardCut>(random() % 3);
    plan.profile().data_parallel.root_unit = random() % 2 == 0;
  }
  o.sync_each = random() % 2 == 0;
  for (const Overlap overlap : {Overlap::kGrad, Overlap::kParam}) {
    if (random() % 3 == 0) plan.options().overlap.insert(overlap);
  }
  plan.options().bucket_bytes = int64_t{1} << (20 + random() % 8);
  SoftwareProfile& profile = plan.profile();
  profile.pipeline.p2p_blocking = random() % 2 == 0;
  profile.pipeline.p2p_host_sync = random() % 2 == 0;
  profile.pipeline.p2p_scatter_gather = random() % 2 == 0;
  profile.update.zero_grad = random() % 2 == 0;
  profile.update.grad_clip = random() % 2 == 0;
  if (o.zero >= 2) o.unit_layers = static_cast<int64_t>(1 + random() % 3);
}

TEST(GraphWorkspace, PlansMayBeCutAnywhere) {
  Dice dice(static_cast<uint32_t>(TestSeed(20261124)));
  Session session;
  GraphWorkspace workspace;
  for (int i = 0; i < 100; ++i) {
    TransformerConfig config = SmallGpt();
    config.layers = 4;
    config.tied_embeddings = dice.Maybe(2);
    PlanUnderTest plan = PlanUnderTest::Of(config);
    plan.Pp(4).MicroBatches(1, 8);
    if (!dice.Maybe(4)) {
      plan.options().layout.clear();
      plan.options().cuts = DrawCuts(dice, plan.graph(), 3);
    }
    ASSERT_OK(workspace.Compile(plan.Request(), session));
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile(session));
    ASSERT_EQ(workspace.graph().DebugString(), graph.DebugString()) << "plan " << i;
  }
}

TEST(GraphWorkspace, EveryPlanIsAsIfItWereTheFirst) {
  std::mt19937_64 random(TestSeed(20261122));
  Session session;
  GraphWorkspace workspace;
  for (int order = 0; order < 40; ++order) {
    const int64_t pp = int64_t{1} << random() % 4;
    const int64_t vpp = pp > 1 && pp < 8 && random() % 2 == 0 ? 2 : 1;
    const auto micro_batches = static_cast<int64_t>(1 + random() % 16);
    const std::vector<Schedule> schedules =
        pp == 1   ? std::vector<Schedule>{Schedule::kNone}
        : vpp > 1 ? std::vector<Schedule>{Schedule::kInterleaved, Schedule::kBreadthFirst,
                                          Schedule::kTable}
                  : std::vector<Schedule>{Schedule::k1f1b, Schedule::kGpipe, Schedule::kEager1f1b,
                                          Schedule::kZbH1, Schedule::kZb2p,  Schedule::kTable};
    const Schedule schedule = schedules[random() % schedules.size()];
    std::string table;
    if (schedule == Schedule::kTable) {
      std::mt19937 turns(static_cast<uint32_t>(random()));
      table = PrintScheduleTable(RandomTable({pp, micro_batches, vpp}, turns, turns() % 2 == 0));
    }
    for (int i = 0; i < 12; ++i) {
      PlanUnderTest plan = Small();
      plan.Pp(pp, schedule, vpp).MicroBatches(1 + random() % 2, micro_batches);
      plan.options().schedule_table = table;
      std::vector<int64_t>& layout = plan.options().layout;
      if (layout.size() > 2 && random() % 3 == 0) {
        const size_t from = random() % layout.size(), to = random() % layout.size();
        if (layout[from] > 1) --layout[from], ++layout[to];
      }
      Vary(random, plan);
      // Refused before they are compiled.
      if (plan.options().splits_backward()) {
        plan.options().zero %= 2;
        plan.options().unit_layers = 1;
      }
      CompileRequest request = plan.Request();
      // Some are refused on the way.
      const auto refused = static_cast<int32_t>(random() % (2 * pp));
      request.check = [&](const ExecutionGraph& graph, int32_t program) {
        return program != refused || graph.programs[program].instances.empty();
      };
      const absl::Status status = workspace.Compile(request, session);
      if (refused < pp) {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
        continue;
      }
      ASSERT_OK(status);
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile(session));
      ASSERT_EQ(workspace.graph().DebugString(), graph.DebugString()) << "order " << order;
    }
  }
}

}  // namespace
}  // namespace plancast
