// An outline issues what the program issues, instance by instance.

#include "graph/execution/program_outline.h"

#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "compiler/program/block_catalogue.h"
#include "compiler/program_plan.h"
#include "compiler/stage_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/compiler/random_homes.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// Block, layers, micro-batch, phase, and of pairs the micro-batch that goes forward.
using Issued = std::tuple<int32_t, int32_t, int32_t, Phase, int32_t>;

Issued IssuedAs(const Instance& i, int32_t later) {
  return {i.block, i.layer_count, i.micro_batch + later, i.phase,
          i.pairs() ? i.forward.micro_batch + later : -1};
}

std::vector<Issued> IssuedBy(const Program& program) {
  std::vector<Issued> issued;
  for (const Instance& i : program.instances) {
    issued.push_back(IssuedAs(i, 0));
  }
  return issued;
}

std::vector<Issued> IssuedBy(const ProgramOutline& outline) {
  std::vector<Issued> issued;
  ForEachIssued(outline, [&](const Instance& i, int32_t later) {
    issued.push_back(IssuedAs(i, later));
    return true;
  });
  return issued;
}

void Vary(std::mt19937_64& random, PlanUnderTest& plan) {
  const auto yes = [&] { return random() % 2 == 0; };
  plan.Dp(int64_t{1} << random() % 3).Tp(int64_t{1} << random() % 2);
  plan.Recomputing(static_cast<Recompute>(random() % 3), yes() ? 1 : -1);
  PlanOptions& o = plan.options();
  o.zero = static_cast<int>(random() % 4);
  o.prefetch = static_cast<int64_t>(random() % 3);
  o.reshard = yes();
  o.sync_each = yes();
  if (yes()) o.overlap.insert(Overlap::kGrad);
  if (yes()) o.overlap.insert(Overlap::kParam);
  if (yes()) o.offload.insert(Offload::kActivations);
  if (yes()) o.offload.insert(Offload::kOptimizer);
  o.bucket_bytes = int64_t{1} << (20 + random() % 8);
  if (o.bucket_bytes > 1 << 23) o.first_bucket_bytes = 1 << 18;
  SoftwareProfile& profile = plan.profile();
  profile.pipeline.p2p_blocking = yes();
  profile.update.zero_grad = yes();
  profile.update.fresh_gradients = yes();
  profile.kernels.fuse_wgrad_accumulation = yes();
  if (o.zero < 2 && o.offload.count(Offload::kActivations) == 0 && yes()) {
    o.overlap.insert(Overlap::kEp);
  }
}

TEST(ProgramOutline, IssuesWhatTheProgramIssues) {
  std::mt19937_64 random(TestSeed(20261123));
  Session session;
  for (int i = 0; i < 200; ++i) {
    PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
    const int64_t pp = int64_t{1} << random() % 3;
    const bool chunks = pp > 1 && random() % 2 == 0;
    plan.Pp(pp,
            pp == 1  ? Schedule::kNone
            : chunks ? Schedule::kInterleaved
                     : Schedule::k1f1b,
            chunks ? 2 : 1);
    plan.MicroBatches(1, static_cast<int64_t>(1 + random() % 12));
    Vary(random, plan);
    if (pp > 1 && i % 3 == 0) {
      Dice dice(static_cast<uint32_t>(random()));
      plan.options().layout.clear();
      plan.options().cuts = DrawCuts(dice, plan.graph(), pp * (chunks ? 2 : 1) - 1);
    }
    if (i % 2 == 0 && plan.options().zero >= 2 &&
        plan.options().offload.count(Offload::kActivations) == 0) {
      plan.options().unit_layers = static_cast<int64_t>(1 + random() % 3);
    }
    if (i % 2 == 1) {
      plan.options().overlap.erase(Overlap::kEp);
      DrawHomes([&](uint64_t n) { return static_cast<int64_t>(random() % n); }, plan);
    }
    const CompileRequest request = plan.Request();
    ASSERT_OK_AND_ASSIGN(const ProgramPlan programs, PlanPrograms(request, session, nullptr));
    const PipelineSchedule schedule = programs.Schedule(plan.options().micro_batches);
    BlockCatalogue catalogue;
    ProgramOutline outline;
    for (int64_t stage = 0; stage < pp; ++stage) {
      Program program;
      DraftStageProgram(programs.inputs(), stage, schedule.OfStage(stage), &catalogue, &program);
      const int32_t blocks = catalogue.size();
      OutlineStageProgram(programs.inputs(), stage, {schedule.OfStage(stage)}, &catalogue,
                          &outline);
      EXPECT_EQ(catalogue.size(), blocks);
      EXPECT_EQ(IssuedBy(outline), IssuedBy(program)) << "plan " << i << ", stage " << stage;
      EXPECT_THAT(outline.written.static_bytes, testing::ElementsAreArray(program.static_bytes));
      EXPECT_EQ(outline.written.host_bytes, program.host_bytes);
    }
  }
}

TEST(ProgramOutline, WritesEqualPassesOnce) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Pp(4).MicroBatches(1, 64);
  const CompileRequest request = plan.Request();
  Session session;
  ASSERT_OK_AND_ASSIGN(const ProgramPlan programs, PlanPrograms(request, session, nullptr));
  BlockCatalogue catalogue;
  ProgramOutline outline;
  OutlineStageProgram(programs.inputs(), 1, {programs.Schedule(64).OfStage(1)}, &catalogue,
                      &outline);
  // What begins and ends, the first and another forward pass, the first, another and the
  // last backward pass.
  EXPECT_EQ(outline.parts.size(), 7);
  EXPECT_EQ(outline.turns.size(), 2 + 2 * 64);
}

}  // namespace
}  // namespace plancast
