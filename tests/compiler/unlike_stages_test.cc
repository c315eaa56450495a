// Stages with meshes of their own: those that are alike equal the regular plan, and what crosses
// borders is what the closed forms say. tests/planner/language compares random ones with flat.

#include "compiler/unlike_stages.h"

#include <cstdint>
#include <deque>
#include <iostream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "executor/jobs/joint_simulation.h"
#include "executor/jobs/placement.h"
#include "executor/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSlices = 4;
constexpr uint32_t kSeedsPerSlice = 60;
constexpr int64_t kBatch = 12;  // samples of a micro-batch on all ranks of a stage

TransformerConfig Tiny(int64_t layers, bool tied = false) {
  TransformerConfig config;
  config.tied_embeddings = tied;
  config.name = "tiny";
  config.layers = layers;
  config.hidden = 32;
  config.heads = 4;
  config.kv_heads = 4;
  config.head_dim = 8;
  config.ffn = 64;
  config.vocab = 120;
  config.seq = 16;
  config.max_positions = 16;
  return config;
}

// One stage after the other, on devices in this order.
void Place(PlanOptions& options) {
  int64_t first = 0;
  for (StageOptions& stage : options.stages) {
    stage.micro_batch = kBatch / stage.dp;
    stage.first_device = first;
    first += stage.devices();
  }
  options.dp = options.stages[0].dp;
  options.tp = options.stages[0].tp;
  options.micro_batch = options.stages[0].micro_batch;
}

std::string Text(const PlanOptions& options) {
  std::string text;
  for (const StageOptions& s : options.stages) {
    absl::StrAppend(&text, " dp=", s.dp, ",tp=", s.tp, ",cp=", s.cp, ",ep=", s.ep, "@",
                    s.first_device);
  }
  return absl::StrCat(text, " vpp=", options.vpp, " zero=", options.zero, " sp=", options.sp);
}

PlanUnderTest DrawPlan(Dice& dice, bool dense = false) {
  const int64_t pp = dice.Of<int64_t>({2, 2, 3}), vpp = dice.Maybe(4) ? 2 : 1;
  const int64_t layers = pp * vpp * dice.Of<int64_t>({1, 2});
  TransformerConfig config = Tiny(layers, /*tied=*/dice.Maybe(2));
  const bool routed = !dense && dice.Maybe(3);
  if (routed) {
    config.experts.count = 12;
    config.experts.topk = 3;
    config.experts.ffn = 24;
  }
  PlanUnderTest plan = PlanUnderTest::Of(config);
  if (routed && dice.Maybe(2)) {
    // Shares of 64, so that products with them are exact.
    std::vector<double> loads(12, 1);
    for (int i = 12; i < 64; ++i) ++loads[dice.Below(12)];
    plan.tree().SetLoad("experts", loads);
  }
  plan.Pp(pp, vpp > 1 ? Schedule::kInterleaved : Schedule::k1f1b, vpp);
  PlanOptions& options = plan.options();
  options.micro_batches = dice.Of<int64_t>({1, 2, 4, 6});
  if (dice.Maybe(3)) plan.Sp();
  options.zero = dice.Of<int>({0, 0, 1, 2, 3});
  options.sync_each = options.zero >= 2;
  for (int64_t stage = 0; stage < pp; ++stage) {
    StageOptions own;
    own.dp = dice.Of<int64_t>({1, 2, 3, 4});
    own.tp = dice.Of<int64_t>({1, 2, 4});
    if (routed && dice.Maybe(2)) own.ep = own.dp;
    options.stages.push_back(own);
  }
  Place(options);
  if (dice.Maybe(2)) {  // stages need not follow one another on the machine
    std::swap(options.stages[0].first_device, options.stages[1].first_device);
    options.stages[0].first_device = options.stages[1].devices();
    options.stages[1].first_device = 0;
  }
  if (dice.Maybe(3)) {  // before, between or behind the stages
    const int64_t devices = 1 + dice.Below(3);
    const StageOptions& at = options.stages[dice.Below(pp)];
    const int64_t first = at.first_device + (dice.Maybe(2) ? at.devices() : 0);
    for (StageOptions& stage : options.stages) {
      if (stage.first_device >= first) stage.first_device += devices;
    }
    options.idle.push_back({first, devices});
  }
  SoftwareProfile& profile = plan.profile();
  profile.update.grad_clip = dice.Maybe(2);
  profile.pipeline.p2p_blocking = dice.Maybe(3);
  plan.Recomputing(dice.Of<Recompute>({Recompute::kNone, Recompute::kFull}));
  return plan;
}

class UnlikeStagesTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Slices, UnlikeStagesTest, testing::Range(0, kSlices));

// `levels`: tp is cut over heads and columns as far as each stage's ranks go, and inside of them
// in halves of the sequence.
void CompareFoldedWithFlat(uint32_t first, uint32_t count, bool levels) {
  int64_t ranks = 0, classes = 0;
  for (uint32_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    Dice dice(seed);
    PlanUnderTest plan = DrawPlan(dice, /*dense=*/levels);
    if (levels) {
      for (StageOptions& stage : plan.options().stages) stage.tp = dice.Of<int64_t>({2, 4, 8});
      plan.options().idle.clear();
      Place(plan.options());
      plan.Split("", "tp", {"heads|ffn|vocab", "seq/2"});
      if (dice.Maybe(2)) plan.Split("layers.*.mlp", "tp", {"seq/2", "ffn"});
    }
    SCOPED_TRACE(testing::Message() << "seed " << seed << Text(plan.options()));
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, CompileWithTimes(plan));
    ASSERT_OK_AND_ASSIGN(const Machine machine,
                         Machine::Create(DrawMachine(dice, graph.mesh.num_devices())));
    const CommPricer::RealiseFn realise = RealiseOn(machine, graph);
    const ReferenceLowering reference = LowerReference(graph, machine, UnitCost(), realise);
    const ReferenceTimes times = RunReference(reference, {1000, 2'000'000, 1'000'000});
    HostParams host;
    host.start_ps = 1000;
    host.launch_ps = 2'000'000;
    host.sync_ps = 1'000'000;
    const auto folded = Simulation::Run(graph, machine, realise, Form::kFolded, host);
    ASSERT_OK(folded.status());
    ExpectSame(**folded, reference, times);
    ranks += static_cast<int64_t>(reference.ranks.size());
    classes += static_cast<int64_t>((*folded)->sim().entities.size());
    const std::vector<ClassMemory> memory = ReplayMemory(graph, RuntimeParams());
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      EXPECT_EQ(memory[p].allocated, ReferencePeak(graph, static_cast<int32_t>(p)));
    }
  }
  std::cout << ranks << " ranks in " << classes << " classes\n";
  EXPECT_LT(classes, ranks);
}

TEST_P(UnlikeStagesTest, FoldedEqualsFlatBitForBit) {
  CompareFoldedWithFlat(1 + static_cast<uint32_t>(GetParam()) * kSeedsPerSlice, kSeedsPerSlice,
                        /*levels=*/false);
}

TEST_P(UnlikeStagesTest, FoldedEqualsFlatWhereAxesAreCutInHierarchies) {
  constexpr uint32_t kPlans = 8;
  CompareFoldedWithFlat(40'001 + static_cast<uint32_t>(GetParam()) * kPlans, kPlans,
                        /*levels=*/true);
}

int64_t Makespan(const ExecutionGraph& graph, const Machine& machine) {
  const auto run = Simulation::Run(graph, machine, RealiseOn(machine, graph));
  EXPECT_OK(run.status());
  return run.ok() ? (*run)->trace().makespan_ps : -1;
}

TEST(UnlikeStagesTest, StagesThatAreAlikeAreTheRegularPlan) {
  for (const int64_t dp : {1, 2, 4}) {
    for (const int64_t tp : {1, 2}) {
      for (const bool tied : {false, true}) {
        PlanUnderTest regular = PlanUnderTest::Of(Tiny(8, tied));
        PlanUnderTest own = PlanUnderTest::Of(Tiny(8, tied));
        for (PlanUnderTest* plan : {&regular, &own}) {
          plan->Dp(dp).Tp(tp).Pp(4).MicroBatches(kBatch / dp, 8);
        }
        own.options().stages.assign(4, StageOptions{dp, tp});
        Place(own.options());
        ASSERT_OK_AND_ASSIGN(const ExecutionGraph a, CompileWithTimes(regular));
        ASSERT_OK_AND_ASSIGN(const ExecutionGraph b, CompileWithTimes(own));
        ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(UnitMachine(2, 16, 4)));
        // Where receivers hold copies they may gather instead, if that is faster.
        const int64_t usual = Makespan(a, machine), chosen = Makespan(b, machine);
        EXPECT_LE(chosen, usual) << dp << "x" << tp << (tied ? " tied" : "");
        if (tp == 1 && (!tied || dp == 1)) {
          EXPECT_EQ(chosen, usual);
        }
        for (size_t p = 0; p < 4; ++p) {
          EXPECT_EQ(ReplayMemory(a, RuntimeParams())[p].allocated,
                    ReplayMemory(b, RuntimeParams())[p].allocated);
        }
      }
    }
  }
}

// Two such plans on devices of one machine, in any order.
TEST(UnlikeStagesTest, JobsTogetherAreTheReferenceBitForBit) {
  for (uint32_t seed = 1000; seed < 1040 && !HasFailure(); ++seed) {
    Dice dice(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::deque<ExecutionGraph> graphs;
    std::vector<PlacedJob> placed;
    int64_t devices = 0;
    while (graphs.size() < 2) {
      PlanUnderTest plan = DrawPlan(dice);
      ASSERT_OK_AND_ASSIGN(graphs.emplace_back(), CompileWithTimes(plan));
      if (!graphs.back().skew.empty()) graphs.pop_back();  // not several jobs
    }
    for (const ExecutionGraph& graph : graphs) devices += graph.mesh.num_devices();
    ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(DrawMachine(dice, devices)));
    std::vector<int64_t> order(devices);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = devices; dice.Maybe(2) && i > 1; --i) {
      std::swap(order[i - 1], order[dice.Below(i)]);
    }
    std::vector<ReferenceJob> reference_jobs;
    std::vector<ReferenceHost> hosts;
    std::vector<const PlacedJob*> jobs;
    for (const ExecutionGraph& graph : graphs) {
      PlacedJob& job = placed.emplace_back();
      job.name = absl::StrCat("job ", placed.size());
      job.graph = &graph;
      job.devices.assign(order.end() - graph.mesh.num_devices(), order.end());
      order.resize(order.size() - job.devices.size());
    }
    const auto realise_of = [&machine](const PlacedJob& job) -> CommPricer::RealiseFn {
      return [&machine, &job](const GroupPattern& group, const CommSpec& comm) {
        if (comm.kind != CollectiveKind::kReshard) {
          return Realise(machine, group, comm.kind, comm.bytes);
        }
        return CheapestWay(*job.graph, machine, group, comm, {}, &job.devices);
      };
    };
    for (const PlacedJob& job : placed) {
      jobs.push_back(&job);
      reference_jobs.push_back({job.graph, job.devices, realise_of(job)});
      hosts.resize(hosts.size() + job.devices.size());
    }
    ASSERT_OK(CheckPlacements(placed, machine));
    const UnitCost costs;
    const ReferenceTimes times = RunReference(LowerReference(reference_jobs, machine, costs), hosts,
                                              LinkSharing::kMaxMin, int64_t{1} << 20);
    JointSimulation::Options how;
    how.realise = realise_of;
    ASSERT_OK_AND_ASSIGN(const auto joint, JointSimulation::Run(jobs, machine, costs, how));
    EXPECT_EQ(joint->trace().makespan_ps, times.makespan_ps);
  }
}

// Idle devices make nothing faster or slower, wherever they are numbered.
TEST(UnlikeStagesTest, IdleDevicesDoNothing) {
  const auto planned = [](int64_t idle) {
    PlanUnderTest plan = PlanUnderTest::Of(Tiny(4));
    plan.Pp(2).MicroBatches(1, 4);
    plan.options().stages = {StageOptions{2, 1}, StageOptions{2, 2}};
    Place(plan.options());
    if (idle == 0) return plan;
    plan.options().stages[1].first_device += idle;
    plan.options().idle.push_back({2, idle});
    return plan;
  };
  PlanUnderTest without = planned(0), with = planned(2);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph a, CompileWithTimes(without));
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph b, CompileWithTimes(with));
  ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(UnitMachine(1, 8, 8)));
  EXPECT_EQ(Makespan(a, machine), Makespan(b, machine));
  ASSERT_EQ(b.programs.size(), 3);
  EXPECT_EQ(b.programs[2].name, "idle");
  EXPECT_EQ(b.DevicesOf(b.programs[2]), 2);
  EXPECT_EQ(ReplayMemory(b, RuntimeParams())[2].allocated, 0);
}

// Each stage has the loads of its own parts: of 12 experts on dp=2 and on dp=4.
TEST(UnlikeStagesTest, LoadsAreByDevice) {
  TransformerConfig config = Tiny(4);
  config.experts.count = 12;
  config.experts.topk = 3;
  config.experts.ffn = 24;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.tree().SetLoad("experts", {4, 4, 4, 2, 2, 2, 1, 1, 1, 1, 1, 1});
  plan.Pp(2).MicroBatches(1, 2);
  StageOptions two{2, 1}, four{4, 1};
  two.ep = 2, four.ep = 4;
  plan.options().stages = {two, four};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_THAT(graph.skew.loads, ElementsAre(DoubleEq(1.5), DoubleEq(0.5), DoubleEq(2), DoubleEq(1),
                                            DoubleEq(0.5), DoubleEq(0.5)));
}

// Heads that the first stage cannot share out are no matter of its own.
TEST(UnlikeStagesTest, WhatOtherStagesHoldNeedNotDivide) {
  PlanUnderTest plan = PlanUnderTest::Of(Tiny(4));
  plan.Pp(2).MicroBatches(1, 2);
  plan.options().cuts = {{1, 0, 0}};  // before the layers, which have four heads
  plan.options().stages = {StageOptions{1, 8}, StageOptions{2, 2}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_EQ(graph.programs.size(), 2);
  std::swap(plan.options().stages[0], plan.options().stages[1]);
  Place(plan.options());
  EXPECT_THAT(plan.Compile(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       AllOf(HasSubstr("stages[1]"), HasSubstr("heads"))));
}

// The stream of a micro-batch, bf16.
constexpr int64_t kStream = 2 * kBatch * 16 * 32;

int64_t Crossing(const Reshard::Way& way) {
  int64_t bytes = 0;
  for (const Reshard::Flow& flow : way.flows) bytes += flow.bytes;
  return bytes;
}

// Four ranks of data parallelism send to two with two of tensor parallelism each: every copy
// gets all of it, or each its half, which they gather.
TEST(UnlikeStagesTest, WhatCrossesABorderIsTheClosedForm) {
  PlanUnderTest plan = PlanUnderTest::Of(Tiny(4));
  plan.Pp(2).MicroBatches(1, 2);
  plan.options().stages = {StageOptions{4, 1}, StageOptions{2, 2}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.reshards.size(), 2);
  const Reshard& forward = graph.reshards[0];
  ASSERT_EQ(forward.ways.size(), 3);
  EXPECT_EQ(forward.ways[0].name, "send_receive");
  EXPECT_EQ(Crossing(forward.ways[0]), 2 * kStream);
  EXPECT_EQ(Crossing(forward.ways[1]), kStream);
  EXPECT_EQ(forward.ways[1].after.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(forward.ways[1].after.bytes, kStream / 2);
  EXPECT_EQ(Crossing(forward.ways[2]), kStream);
  // The gradient is whole on both ranks of a pair: each sends a half of it.
  EXPECT_EQ(Crossing(graph.reshards[1].ways[0]), kStream);
}

// Gradients in fp32 of a table that the first and the last stage use.
constexpr int64_t kTable = 4 * 120 * 32;

// Both directions of the swap of a tied table's gradient, between four copies of it and two
// copies of its halves.
TEST(UnlikeStagesTest, TiedGradientsCrossBothWaysInTheClosedForm) {
  PlanUnderTest plan = PlanUnderTest::Of(Tiny(4, /*tied=*/true));
  plan.Pp(2).MicroBatches(1, 2);
  plan.options().stages = {StageOptions{4, 1}, StageOptions{2, 2}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.reshards.size(), 4);
  const Reshard &onward = graph.reshards[2], &back = graph.reshards[3];
  EXPECT_EQ(onward.ways[0].name, "send_receive");
  EXPECT_EQ(Crossing(onward.ways[0]), 2 * kTable);
  EXPECT_EQ(Crossing(back.ways[0]), 4 * kTable);
  for (const Reshard* reshard : {&onward, &back}) {
    EXPECT_EQ(Crossing(reshard->ways.back()), kTable) << reshard->ways.back().name;
    for (const Reshard::Flow& flow : reshard->ways[0].flows) {
      EXPECT_EQ(flow.from < 4, reshard == &onward);
      EXPECT_EQ(flow.to < 4, reshard == &back);
    }
  }
}

// The module of multi-token prediction reads the first stage's table, joined with a layer or not.
TEST(UnlikeStagesTest, WhatJoinedModulesShareCrossesAsOfEachAlone) {
  TransformerConfig config = Tiny(3);
  config.mtp_layers = 1;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Pp(2).MicroBatches(1, 2).Recomputing(Recompute::kFull);
  plan.options().stages = {StageOptions{4, 1}, StageOptions{2, 2}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph alone, plan.Compile());
  plan.options().recompute_joined = 2;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph joined, plan.Compile());
  ASSERT_EQ(alone.reshards.size(), 4);
  ASSERT_EQ(joined.reshards.size(), 4);
  for (const int shared : {2, 3}) {
    EXPECT_GE(Crossing(alone.reshards[shared].ways.back()), kTable);
    EXPECT_EQ(Crossing(joined.reshards[shared].ways.back()),
              Crossing(alone.reshards[shared].ways.back()));
  }
}

// Ranks that keep shards of gradients send and receive those alone: each element once.
TEST(UnlikeStagesTest, OfShardedGradientsShardsCross) {
  PlanUnderTest plan = PlanUnderTest::Of(Tiny(4, /*tied=*/true));
  plan.Pp(2).MicroBatches(1, 2);
  plan.options().zero = 2;
  plan.options().sync_each = true;
  plan.options().stages = {StageOptions{4, 1}, StageOptions{3, 2}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  ASSERT_EQ(graph.reshards.size(), 4);
  for (const Reshard* reshard : {&graph.reshards[2], &graph.reshards[3]}) {
    ASSERT_EQ(reshard->ways.size(), 1);
    EXPECT_EQ(Crossing(reshard->ways[0]), kTable);
  }
}

// The work of all devices is that of one.
TEST(UnlikeStagesTest, FlopsAreConserved) {
  const auto flops = [](const ExecutionGraph& graph) {
    double sum = 0;
    for (const Program& program : graph.programs) {
      for (const Instance& instance : program.instances) {
        const Block& block = graph.blocks[instance.block];
        for (int32_t t = 0; t < block.size(); ++t) {
          if (block.kind[t] != TaskKind::kKernel) continue;
          const KernelSpec& kernel = graph.kernels[block.spec[t]];
          if (kernel.family != KernelFamily::kGemm) continue;
          sum +=
              kernel.flops * instance.layer_count * static_cast<double>(graph.DevicesOf(program));
        }
      }
    }
    return sum;
  };
  PlanUnderTest one = PlanUnderTest::Of(Tiny(4));
  one.MicroBatches(kBatch, 3);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, one.Compile());
  PlanUnderTest plan = PlanUnderTest::Of(Tiny(4));
  plan.Pp(2).MicroBatches(1, 3);
  plan.options().stages = {StageOptions{3, 2}, StageOptions{1, 4}};
  Place(plan.options());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_NEAR(flops(graph) / flops(whole), 1, 1e-9);
}

TEST(UnlikeStagesTest, WhatCannotBeSaidYetIsRefused) {
  PlanUnderTest order = PlanUnderTest::Of(Tiny(4));
  order.Pp(2).MicroBatches(1, 2);
  order.options().order = {"pp", "tp", "cp", "ep", "dp"};
  order.options().stages = {StageOptions{2, 1}, StageOptions{1, 2}};
  Place(order.options());
  EXPECT_THAT(order.Compile(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("order")));
}

}  // namespace
}  // namespace plancast
