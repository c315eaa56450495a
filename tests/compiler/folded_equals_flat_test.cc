// Compiled plans executed folded equal every rank lowered by itself
// (tests/executor/lower_reference), bit for bit: random small transformers,
// random plans, machines that the mesh fits badly.

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/attribution/breakdown.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "gtest/gtest.h"
#include "tests/compiler/draw_training.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/random_homes.h"
#include "tests/executor/mixed_machine.h"

namespace plancast {
namespace {

// In slices, each with seeds of its own, so that shards share them.
constexpr int kSlices = 12;
constexpr uint32_t kSeedsPerSlice = 50;
// The reference looks at every meeting at every event.
constexpr size_t kMostMeetings = 10'000;

// zero=1 to 3 in any form; what ep cuts may not nest with what hsdp cuts.
void DrawSharding(Dice& dice, PlanUnderTest& plan) {
  PlanOptions& o = plan.options();
  SoftwareProfile& profile = plan.profile();
  o.zero = dice.Of<int>({1, 2, 3, 3, 3});
  if (!o.has_expert_mesh() && dice.Maybe(2)) {
    o.dp = o.tp * o.pp > 4 ? 2 : dice.Of<int64_t>({4, 6});
    o.hsdp = dice.Of<int64_t>({0, 1, 2, o.dp / 2});
    if (o.hsdp == 0 && dice.Maybe(2)) o.reshard_ranks = 2;
  }
  o.reshard = !dice.Maybe(3);
  o.prefetch = dice.Of<int64_t>({0, 1, 1, 2, 5});
  o.sync_each = !dice.Maybe(3);
  profile.data_parallel.shard_cut =
      dice.Of<ShardCut>({ShardCut::kParameter, ShardCut::kUnit, ShardCut::kRows});
  profile.data_parallel.sharded_master = dice.Maybe(2);
  profile.data_parallel.root_unit = dice.Maybe(2);
  profile.data_parallel.keeps_last_unit = dice.Maybe(2);
}

void DrawOffload(Dice& dice, PlanUnderTest& plan) {
  PlanOptions& o = plan.options();
  if (dice.Maybe(2)) o.offload.insert(Offload::kActivations);
  if (dice.Maybe(2)) o.offload.insert(Offload::kOptimizer);
  if (o.zero == 3 && dice.Maybe(2)) o.offload.insert(Offload::kParameters);
  o.offload_layers = dice.Of<int64_t>({-1, -1, 1, 2});
  plan.profile().tensors.offload_least_bytes = dice.Of<int64_t>({0, 0, 512});
}

// A node for some layers: cut otherwise, or run again or not.
void DrawNode(Dice& dice, const std::string& path, PlanUnderTest& plan) {
  const std::string node = path + dice.Of<std::string>({"", ".attn", ".mlp"});
  if (dice.Maybe(3)) {
    (*plan.tree().Node(node))->recompute =
        dice.Of<Recompute>({Recompute::kNone, Recompute::kSelective, Recompute::kFull});
  } else {
    plan.Split(node, "tp", dice.Of<std::vector<std::string>>({{}, {"seq"}, {"heads", "seq"}}));
  }
}

void DrawLayers(Dice& dice, PlanUnderTest& plan) {
  const int64_t some = 1 + dice.Below(plan.graph().LayerCount());
  if (!dice.Maybe(3)) {
    DrawNode(dice,
             dice.Of<std::string>({"layers[::2]", absl::StrCat("layers[", some - 1, ":]"),
                                   absl::StrCat("layers[0:", some, "]")}),
             plan);
  }
  if (dice.Maybe(2)) DrawNode(dice, dice.Of<std::string>({"layers.0", "layers[-1]"}), plan);
}

// Cuts tp, and dp where nothing else does, in a hierarchy: what `over_tp` names and the sequence,
// in some order, for the model and for some layers of it.
void DrawHierarchies(Dice& dice, PlanUnderTest& plan) {
  PlanOptions& o = plan.options();
  const bool whole = !o.has_expert_mesh() && o.hsdp == 0 && o.reshard_ranks == 0 &&
                     !plan.graph().FindDim("experts").ok();
  const auto& nodes = plan.tree().nodes();
  const bool alone = std::all_of(nodes.begin(), nodes.end(), [](const auto& node) {
    return node.first.empty() || node.second.split.empty();
  });
  if (whole && alone && o.pp * o.tp <= 4) plan.Tp(2 * o.tp);
  if (o.tp == 1) return;
  std::vector<std::string> dims, others;  // nodes below the root name dims of the model alone
  for (const std::string& dim : plan.tree().nodes().at("").FindSplit("tp")->levels[0].dims) {
    if (dim == "heads" || plan.graph().FindDim(dim).ok()) dims.push_back(dim);
    if (dim != "heads" && dim != "seq" && plan.graph().FindDim(dim).ok()) others.push_back(dim);
  }
  others.emplace_back("seq");
  const std::string over_tp = absl::StrJoin(dims, "|");
  const auto levels = [&] {
    const int64_t inner = dice.Of<int64_t>({1, 2, o.tp / 2});
    const int64_t outer = o.tp / inner;
    // There are four heads.
    const std::string first = absl::StrCat(outer > 4 ? "seq" : over_tp, "/", outer);
    const std::string second = dice.Of<std::string>({"seq", absl::StrJoin(others, "|"), ""});
    return std::vector<std::string>{first, absl::StrCat(second, "/", inner)};
  };
  plan.Split("", "tp", levels());
  if (alone && dice.Maybe(2)) {
    std::vector<std::string> turned = levels();
    std::swap(turned[0], turned[1]);
    plan.Split(dice.Of<std::string>({"layers.*.mlp", "layers[1:]", "layers[::2].attn"}), "tp",
               turned);
  }
  if (whole && o.dp * o.tp * o.pp <= 8 && o.zero != 1 && dice.Maybe(2)) {
    plan.Dp(4).Split("", "dp", {"batch/2", "seq/2"});
  }
}

PlanUnderTest DrawPlan(Dice& dice, int64_t micro_batches) {
  const int64_t pp = dice.Of<int64_t>({1, 1, 2, 3}), vpp = pp > 1 && dice.Maybe(3) ? 2 : 1;
  TransformerConfig config;
  config.name = "tiny";
  config.layers = std::max<int64_t>(2, pp * vpp * dice.Of<int64_t>({1, 2}));
  if (config.layers % (pp * vpp) != 0) config.layers = pp * vpp * 2;
  config.hidden = 32;
  config.heads = 4;
  config.kv_heads = dice.Of<int64_t>({1, 2, 4});
  config.head_dim = 8;
  config.ffn = 64;
  config.vocab = 120;
  config.seq = 16;
  config.max_positions = 16;
  config.tied_embeddings = dice.Maybe(3);
  config.parallel_residual = dice.Maybe(4);
  const bool routed = dice.Maybe(3);
  if (routed) {
    config.experts.count = 12;
    config.experts.topk = 3;
    config.experts.ffn = 24;
    config.experts.shared = config.parallel_residual ? 0 : dice.Of<int64_t>({0, 1});
    config.experts.normalized = dice.Maybe(2);
    if (dice.Maybe(3)) config.experts.score = RouterScore::kSigmoid;
    if (dice.Maybe(2)) config.mlp = Mlp::kSwiglu;
    config.experts.dense_layers = dice.Of<int64_t>({0, 0, 1});
    config.experts.every = dice.Of<int64_t>({1, 1, 2});
  }
  if (dice.Maybe(3)) {
    config.window = 6;
    config.window_pattern = dice.Of<std::string>({"", "wf", "fw", "wwf"});
    config.attention_sinks = dice.Maybe(3);
  } else if (dice.Maybe(4)) {
    config.position = Position::kRope;
    config.kv_heads = config.heads;
    config.latent = {dice.Of<int64_t>({0, 12}), 10, 8, 4, 6};
  }
  PlanUnderTest plan = PlanUnderTest::Of(config, dice.Maybe(2), dice.Maybe(2));
  SoftwareProfile& profile = plan.profile();
  profile.update.grad_clip = dice.Maybe(2);
  profile.update.zero_grad = dice.Maybe(2);
  profile.pipeline.p2p_blocking = dice.Maybe(3);
  profile.pipeline.p2p_host_sync = dice.Maybe(3);
  profile.pipeline.p2p_scatter_gather = dice.Maybe(3);
  profile.kernels.wgrad_overlaps_tp = !dice.Maybe(3);
  profile.tensors.sp_saves_sharded = !dice.Maybe(3);
  profile.kernels.fuse_wgrad_accumulation = !dice.Maybe(3);
  if (dice.Maybe(2)) profile.kernels.fusions = {"bias_gelu", "bias_dropout_add"};
  plan.Dp(dice.Of<int64_t>({1, 2, 3})).Tp(dice.Of<int64_t>({1, 2, 4}));
  std::vector<std::string> over_tp = {"heads", "ffn", "shared_ffn", "vocab"};
  if (dice.Maybe(3)) over_tp.emplace_back("seq");
  if (routed) {
    const int64_t dp = plan.options().dp, tp = plan.options().tp, etp = dice.Of<int64_t>({1, tp});
    int64_t ep = dice.Of<int64_t>({1, 2, 3, 4, 6, 12});
    while (config.experts.count % ep != 0 || dp * tp % (ep * etp) != 0 ||
           (ep * etp % tp != 0 && tp % (ep * etp) != 0))
      --ep;
    plan.Etp(etp).Ep(ep);
    over_tp.emplace_back(etp == tp ? "expert_ffn" : "slots");
    if (dice.Maybe(2)) {
      // Shares of 64, so that products with them are exact.
      std::vector<double> loads(config.experts.count, 1);
      for (int64_t i = config.experts.count; i < 64; ++i) ++loads[dice.Below(config.experts.count)];
      plan.tree().SetLoad("experts", loads);
    }
  }
  plan.Split("", "tp", over_tp);
  plan.Pp(pp,
          vpp > 1         ? Schedule::kInterleaved
          : pp == 1       ? Schedule::kNone
          : dice.Maybe(3) ? Schedule::kGpipe
                          : Schedule::k1f1b,
          vpp);
  plan.MicroBatches(1, micro_batches);
  plan.Recomputing(dice.Of<Recompute>({Recompute::kNone, Recompute::kSelective, Recompute::kFull}),
                   dice.Of<int64_t>({-1, -1, 1}));
  PlanOptions& options = plan.options();
  if (options.recompute == Recompute::kSelective) {
    const std::vector<std::string> words = {"core_attn", "layernorm", "mla_up_proj",   "mlp", "moe",
                                            "moe_act",   "op",        "shared_experts"};
    for (const std::string& word : words) {
      if (dice.Maybe(3)) options.recompute_ops.push_back(word);
    }
  } else if (options.recompute == Recompute::kFull && dice.Maybe(3)) {
    options.recompute_layers = -1;
    options.recompute_every = dice.Of<int64_t>({1, 2, 3});
  }
  profile.recompute.replays_only_needed = dice.Maybe(2);
  profile.recompute.keeps_unread = dice.Maybe(3);
  profile.types.grad_dtype = dice.Of<DType>({DType::kFp32, DType::kFp32, DType::kBf16});
  if (dice.Maybe(3)) profile.types.main_grad_dtype = DType::kFp32;
  profile.types.reduce_dtype = dice.Of<DType>({DType::kFp32, DType::kBf16, DType::kInt4});
  profile.types.state_dtype = dice.Of<DType>({DType::kFp32, DType::kInt8});
  if (dice.Maybe(3)) profile.types.param_dtype = DType::kFp8;
  options.bucket_bytes = dice.Of<int64_t>({1, 20'000, int64_t{1} << 40});
  if (dice.Maybe(2)) options.overlap.insert(Overlap::kGrad);
  if (dice.Maybe(2)) {
    plan.Zero1();
    if (dice.Maybe(2)) options.overlap.insert(Overlap::kParam);
  }
  if (dice.Maybe(2)) DrawSharding(dice, plan);
  if (dice.Maybe(2)) DrawOffload(dice, plan);
  if (options.recompute == Recompute::kFull && !options.recomputes_some_layers() &&
      options.zero < 2 && options.offload.count(Offload::kActivations) == 0) {
    options.recompute_joined = dice.Of<int64_t>({1, 2, 3, 4});
  }
  if (dice.Maybe(4)) options.order = {"dp", "tp", "cp", "ep", "pp"};
  if (dice.Maybe(4)) options.order = {"pp", "tp", "cp", "ep", "dp"};
  if (dice.Maybe(2)) DrawLayers(dice, plan);
  if (dice.Maybe(3)) {
    DrawTraining(dice, plan);
  }
  if (dice.Maybe(3)) {
    DrawHomes([&](int64_t n) { return dice.Below(n); }, plan);
  }
  return plan;
}

std::string Text(PlanUnderTest& plan) {
  const PlanOptions& o = plan.options();
  const SoftwareProfile& p = plan.profile();
  return absl::StrCat(
      "dp=", o.dp, ",tp=", o.tp, ",pp=", o.pp, ",vpp=", o.vpp, ",zero=", o.zero, ",hsdp=", o.hsdp,
      ",reshard=", o.reshard, "/", o.reshard_ranks, ",prefetch=", o.prefetch, ",sync=", o.sync_each,
      ",cut=", static_cast<int>(p.data_parallel.shard_cut), p.data_parallel.root_unit,
      p.data_parallel.keeps_last_unit, ",offload=", o.offload.size(), ":", o.offload_layers,
      ",ep=", o.ep, ",accum=", o.micro_batches, " schedule ", static_cast<int>(o.schedule),
      " recompute ", static_cast<int>(o.recompute), ":", absl::StrJoin(o.recompute_ops, "+"),
      o.recompute_layers, "/", o.recompute_every, "/", o.recompute_joined, " overlaps ",
      o.overlap.size(), " bucket ", o.bucket_bytes, " order ", absl::StrJoin(o.order, "-"),
      " nodes ", plan.tree().ToJson(), " blocking ", p.pipeline.p2p_blocking, " sync ",
      p.pipeline.p2p_host_sync, " scatter ", p.pipeline.p2p_scatter_gather, " clip ",
      p.update.grad_clip, " tied ", plan.graph().tied.size());
}

class CompiledPlansTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Slices, CompiledPlansTest, testing::Range(0, kSlices));

// Of random plans by seeds: as they are, with stages that begin anywhere, or with hierarchies.
enum class Kind { kAsDrawn, kCut, kHierarchies };
void CompareFoldedWithFlat(uint32_t first, uint32_t last, Kind kind) {
  const bool cut = kind == Kind::kCut;
  std::cout << "seeds " << first << " to " << last << "\n";
  int64_t plans = 0, ranks = 0, classes = 0, split = 0, deadlocks = 0;
  for (uint32_t seed = first; seed <= last; ++seed) {
    Dice dice(seed);
    PlanUnderTest plan = DrawPlan(dice, dice.Of<int64_t>({1, 2, 3, 4}));
    if (cut && plan.options().pp == 1) continue;
    if (cut) {
      plan.options().layout.clear();
      plan.options().cuts =
          DrawCuts(dice, plan.graph(), plan.options().pp * plan.options().vpp - 1);
    }
    if (kind == Kind::kHierarchies) DrawHierarchies(dice, plan);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << Text(plan));
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::StatusOr<Machine> machine =
        Machine::Create(DrawMachine(dice, graph->mesh.num_devices()));
    ASSERT_TRUE(machine.ok()) << machine.status();
    const CommPricer::RealiseFn realise = RealiseOn(*machine);
    const ReferenceLowering reference = LowerReference(*graph, *machine, UnitCost(), realise);
    if (kind == Kind::kHierarchies && reference.meetings.size() > kMostMeetings) continue;
    const ReferenceTimes times = RunReference(reference, {1000, 2'000'000, 1'000'000});
    HostParams host;
    host.start_ps = 1000;
    host.launch_ps = 2'000'000;
    host.sync_ps = 1'000'000;
    const auto folded = Simulation::Run(*graph, *machine, realise, Form::kFolded, host);
    ASSERT_EQ(folded.ok(), !times.deadlock) << folded.status();
    if (!folded.ok()) {
      std::cout << seed << folded.status() << "\n" << Text(plan) << "\n";
      ++deadlocks;
      continue;
    }
    ExpectSame(**folded, reference, times);
    for (double interference : {0.0, 0.1, 0.5}) {
      SCOPED_TRACE(testing::Message() << "interference " << interference);
      const auto run = [&](bool shortcuts) {
        return Simulation::Run(*graph, *machine, realise, Form::kFolded, host, interference,
                               shortcuts, LinkSharing::kMaxMin, interference / 2);
      };
      const auto with = run(true), without = run(false);
      ReferenceHost slowed{1000, 2'000'000, 1'000'000};
      slowed.slowdown_q20 = SlowdownQ20(1 + interference);
      ExpectSame(
          **with, reference,
          RunReference(reference, slowed, LinkSharing::kMaxMin, SlowdownQ20(1 + interference / 2)));
      for (size_t e = 0; e < (*with)->sim().entities.size(); ++e) {
        const UnfoldedTrace& x = (*with)->unfolded(static_cast<int>(e));
        const UnfoldedTrace& y = (*without)->unfolded(static_cast<int>(e));
        EXPECT_EQ(x.start, y.start);
        EXPECT_EQ(x.end, y.end);
        EXPECT_EQ(x.cause, y.cause);
      }
    }
    const std::vector<ClassMemory> memory = ReplayMemory(*graph, RuntimeParams());
    for (size_t p = 0; p < graph->programs.size(); ++p) {
      EXPECT_EQ(memory[p].allocated, ReferencePeak(*graph, static_cast<int32_t>(p)));
    }
    ++plans;
    ranks += static_cast<int64_t>(reference.ranks.size());
    classes += static_cast<int64_t>((*folded)->sim().entities.size());
    split += (*folded)->sim().entities.size() > graph->programs.size();
    if (testing::Test::HasFailure()) break;
  }
  std::cout << plans << " plans compared, " << ranks << " ranks in " << classes << " classes; "
            << split << " plans with split programs\n";
  EXPECT_LT(classes, ranks);
  EXPECT_GT(split, 0);
  EXPECT_EQ(deadlocks, 0);  // a compiled plan never locks up
}

TEST_P(CompiledPlansTest, FoldedEqualsFlatBitForBit) {
  const uint32_t first = 1 + static_cast<uint32_t>(GetParam()) * kSeedsPerSlice;
  CompareFoldedWithFlat(first, first + kSeedsPerSlice - 1, Kind::kAsDrawn);
}

TEST_P(CompiledPlansTest, FoldedEqualsFlatWithStagesThatBeginAnywhere) {
  const uint32_t first = 20'001 + static_cast<uint32_t>(GetParam()) * kSeedsPerSlice;
  CompareFoldedWithFlat(first, first + kSeedsPerSlice - 1, Kind::kCut);
}

TEST_P(CompiledPlansTest, FoldedEqualsFlatWhereAxesAreCutInHierarchies) {
  constexpr uint32_t kPlans = 25;
  const uint32_t first = 30'001 + static_cast<uint32_t>(GetParam()) * kPlans;
  CompareFoldedWithFlat(first, first + kPlans - 1, Kind::kHierarchies);
}

// Devices of several kinds: stages, replicas and shards of one plan on unlike hosts.
TEST_P(CompiledPlansTest, OnMixedMachines) {
  constexpr uint32_t kPlans = 30;
  const uint32_t first = 20'001 + static_cast<uint32_t>(GetParam()) * kPlans;
  std::cout << "seeds " << first << " to " << first + kPlans - 1 << "\n";
  int64_t plans = 0, ranks = 0, classes = 0;
  for (uint32_t seed = first; seed < first + kPlans && !HasFailure(); ++seed) {
    Dice dice(seed);
    PlanUnderTest plan = DrawPlan(dice, dice.Of<int64_t>({1, 2, 3, 8}));
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << Text(plan));
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
    ASSERT_TRUE(graph.ok()) << graph.status();
    if (graph->mesh.num_devices() < 2) continue;
    const absl::StatusOr<Machine> machine =
        Machine::Create(DrawMixedMachine(seed, graph->mesh.num_devices()));
    ASSERT_TRUE(machine.ok()) << machine.status();
    const CommPricer::RealiseFn realise = RealiseOn(*machine);
    const ReferenceLowering reference = LowerReference(*graph, *machine, UnitCost(), realise);
    HostParams host;
    host.launch_ps = 200'000;
    host.sync_ps = 1'000'000;
    for (double interference : {0.0, 0.3}) {
      ReferenceHost slowed{0, host.launch_ps, host.sync_ps};
      slowed.slowdown_q20 = SlowdownQ20(1 + interference);
      const ReferenceTimes times =
          RunReference(reference, slowed, LinkSharing::kMaxMin, SlowdownQ20(1 + interference / 2));
      for (Form form : {Form::kFolded, Form::kFlat}) {
        const auto s = Simulation::Run(*graph, *machine, realise, form, host, interference,
                                       /*shortcuts=*/true, LinkSharing::kMaxMin, interference / 2);
        ASSERT_TRUE(s.ok()) << s.status();
        ExpectSame(**s, reference, times);
        if (form == Form::kFolded) classes += static_cast<int64_t>((*s)->sim().entities.size());
      }
      ranks += static_cast<int64_t>(reference.ranks.size());
    }
    ++plans;
  }
  std::cout << plans << " plans compared, " << ranks << " ranks in " << classes << " classes\n";
  EXPECT_LT(classes, ranks);
}

// Jumps over periods of the steady state change no digit.
TEST_P(CompiledPlansTest, ManyMicroBatches) {
  constexpr uint32_t kPlans = 10;
  const uint32_t first = 10'001 + static_cast<uint32_t>(GetParam()) * kPlans;
  int64_t jumped = 0, periods = 0;
  for (uint32_t seed = first; seed < first + kPlans && !HasFailure(); ++seed) {
    Dice dice(seed);
    PlanUnderTest plan = DrawPlan(dice, dice.Of<int64_t>({12, 24, 36}));
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << Text(plan));
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::StatusOr<Machine> machine =
        Machine::Create(DrawMachine(dice, graph->mesh.num_devices()));
    ASSERT_TRUE(machine.ok()) << machine.status();
    const CommPricer::RealiseFn realise = RealiseOn(*machine);
    const ReferenceLowering reference = LowerReference(*graph, *machine, UnitCost(), realise);
    HostParams host;
    host.launch_ps = dice.Of<int64_t>({0, 200'000, 2'000'000});
    host.sync_ps = 1'000'000;
    for (double interference : {0.0, 0.2}) {
      const auto run = [&](Form form, bool shortcuts) {
        return Simulation::Run(*graph, *machine, realise, form, host, interference, shortcuts,
                               LinkSharing::kMaxMin, interference / 2);
      };
      const auto with = run(Form::kFolded, true), without = run(Form::kFolded, false);
      ASSERT_TRUE(with.ok()) << with.status();
      jumped += (*with)->trace().periods > 0;
      periods += (*with)->trace().periods;
      EXPECT_EQ((*without)->trace().periods, 0);
      for (int32_t e = 0; e < static_cast<int32_t>((*with)->sim().entities.size()); ++e) {
        const UnfoldedTrace &x = (*with)->unfolded(e), &y = (*without)->unfolded(e);
        EXPECT_EQ(x.start, y.start);
        EXPECT_EQ(x.end, y.end);
        EXPECT_EQ(x.cause, y.cause);
        const Breakdown a = BreakdownOf((*with)->input(), (*with)->trace(), e);
        const Breakdown b = BreakdownOf((*without)->input(), (*without)->trace(), e);
        EXPECT_EQ(a.total(), (*with)->trace().makespan_ps);
        EXPECT_EQ(a.bubble, b.bubble);
        EXPECT_EQ(a.exposed_pp, b.exposed_pp);
        EXPECT_EQ(a.launch, b.launch);
      }
      ReferenceHost slowed{0, host.launch_ps, host.sync_ps};
      slowed.slowdown_q20 = SlowdownQ20(1 + interference);
      if (seed % 4 == 0 && reference.meetings.size() <= kMostMeetings) {
        ExpectSame(**with, reference,
                   RunReference(reference, slowed, LinkSharing::kMaxMin,
                                SlowdownQ20(1 + interference / 2)));
      }
    }
  }
  std::cout << jumped << " simulations jumped over " << periods << " periods\n";
  EXPECT_GT(jumped, kPlans / 4);
}

}  // namespace
}  // namespace plancast
