// Random jobs over the whole strategy language: folded equals every rank lowered by itself, bit
// for bit; memory is what a replay event by event finds, and comes back; no work and no byte is
// lost between devices.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/attribution/breakdown.h"
#include "executor/attribution/critical_path.h"
#include "executor/executor.h"
#include "executor/runtime.h"
#include "gtest/gtest.h"
#include "planner/forecast/plan_graph.h"
#include "strategy/schedule/stage_placement.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/executor/expect_same.h"
#include "tests/executor/memory/event_replay.h"
#include "tests/planner/language/random_job.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

constexpr int kSlices = 10;
constexpr int kPlansPerSlice = 510;  // that are compared; 5,000 and more in all slices
constexpr uint32_t kSeedsPerSlice = 100'000;

// What is alive never falls below what lives throughout, and is that again in the end.
void ExpectBalancedMemory(const ExecutionGraph& graph) {
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    const std::vector<ReplayedEvent> events = ReplayEvents(graph, static_cast<int32_t>(p));
    for (int kind = 0; kind < kNumMemoryKinds && !events.empty(); ++kind) {
      const int64_t at_rest = graph.programs[p].static_bytes[kind];
      EXPECT_GE(at_rest, 0);
      for (const ReplayedEvent& event : events) ASSERT_GE(event.live.of[kind], at_rest) << kind;
      EXPECT_EQ(events.back().live.of[kind], at_rest) << kind << " on stage " << p;
    }
  }
}

// Of all devices in an iteration, but for what runs again.
double FlopsOfProducts(const ExecutionGraph& graph) {
  double sum = 0;
  for (const Program& program : graph.programs) {
    const auto devices = static_cast<double>(graph.DevicesOf(program));
    for (const Instance& instance : program.instances) {
      const Block& block = graph.blocks[instance.block];
      for (int32_t t = 0; t < block.size(); ++t) {
        const bool passes =
            block.purpose[t] == Purpose::kForward || block.purpose[t] == Purpose::kBackward;
        if (block.kind[t] != TaskKind::kKernel || !passes) continue;
        const KernelSpec& kernel = graph.kernels[block.spec[t]];
        const bool product = kernel.family == KernelFamily::kGemm ||
                             kernel.family == KernelFamily::kAttention ||
                             kernel.family == KernelFamily::kConvolution;
        if (product) sum += kernel.flops * instance.layer_count * devices;
      }
    }
  }
  return sum;
}

// The same job on one device; what is trained stays.
absl::StatusOr<double> FlopsOfTheModel(const RandomJob& random) {
  Job job = random.job;
  StrategyTree tree;
  tree.plan().mb = random.samples;
  tree.plan().attn = job.strategy.plan().attn;
  for (const auto& [path, node] : job.strategy.nodes()) {
    if (!node.train.has_value() && !node.lora.has_value()) continue;
    Directives& kept = **tree.Node(path);
    kept.train = node.train;
    kept.lora = node.lora;
  }
  job.strategy = std::move(tree);
  job.global_batch = random.samples;
  const absl::StatusOr<Machine> one = Machine::Create(UnitMachine(1, 1));
  Session session;
  const absl::StatusOr<PlanGraph> plan = DrawAndCompile(job, *one, session);
  if (!plan.ok()) return plan.status();
  return FlopsOfProducts(*plan->execution) *
         static_cast<double>(*random.job.global_batch / random.samples);
}

// Who sends and who receives say the same bytes; what crosses a border in messages is what the
// receivers make room for.
void ExpectNoByteLost(const ExecutionGraph& graph) {
  for (const Rendezvous& rendezvous : graph.rendezvous) {
    const CommSpec* first = nullptr;
    for (const Rendezvous::Party& party : rendezvous.parties) {
      const Block& block =
          graph.blocks[graph.programs[party.program].instances[party.instance].block];
      const CommSpec& comm = graph.comms[block.spec[block.rendezvous_task]];
      if (first == nullptr) first = &comm;
      EXPECT_EQ(comm.kind, first->kind);
      EXPECT_EQ(comm.bytes, first->bytes) << block.name;
      EXPECT_EQ(comm.reshard, first->reshard) << block.name;
    }
    if (first == nullptr || first->kind != CollectiveKind::kReshard) continue;
    ASSERT_EQ(rendezvous.parties.size(), 2);
    const Reshard& reshard = graph.reshards[first->reshard];
    for (const Rendezvous::Party& party : rendezvous.parties) {
      const Program& program = graph.programs[party.program];
      const Block& block = graph.blocks[program.instances[party.instance].block];
      const StreamKind stream = block.stream[block.rendezvous_task];
      const bool sends = Sends(stream);
      int64_t room = 0;
      for (const MemoryEvent& event : block.memory) room += std::max<int64_t>(event.delta, 0);
      for (const Reshard::Way& way : reshard.ways) {
        std::map<int64_t, int64_t> received;
        for (const Reshard::Flow& flow : way.flows) {
          EXPECT_TRUE(graph.Runs(program, sends ? flow.from : flow.to)) << way.name;
          received[flow.to] += flow.bytes;
        }
        // Gradients of shared parameters are added to those that are there.
        if (block.purpose[block.rendezvous_task] != Purpose::kPp) continue;
        if (sends || way.name != "send_receive") continue;
        for (const auto& [device, bytes] : received) {
          // Each message is rounded up by itself.
          EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(room),
                      static_cast<double>(way.flows.size() + block.tensors.size()))
              << "device " << device;
        }
      }
    }
  }
}

// Whether several layers are gathered or reduced together, and do not also run again together.
bool HasUnits(const RandomJob& random, const ExecutionGraph& graph) {
  return random.job.strategy.plan().recompute != "uniform" &&
         std::any_of(graph.blocks.begin(), graph.blocks.end(),
                     [](const Block& block) { return block.layers > 1; });
}

bool HasPieces(const RandomJob& random) {
  const auto& nodes = random.job.strategy.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const auto& node) { return !node.second.pieces.empty(); });
}

// Whether activations go to the host and come back.
bool CopiesToHost(const ExecutionGraph& graph) {
  return std::any_of(graph.blocks.begin(), graph.blocks.end(), [&](const Block& block) {
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] == TaskKind::kComm && block.purpose[t] == Purpose::kOffload &&
          block.stream[t] == StreamKind::kCopyOut) {
        return true;
      }
    }
    return false;
  });
}

bool RunsPairs(const ExecutionGraph& graph) {
  return std::any_of(graph.programs.begin(), graph.programs.end(), [](const Program& program) {
    return std::any_of(program.instances.begin(), program.instances.end(),
                       [](const Instance& instance) { return instance.pairs(); });
  });
}

// Kernels of a few microseconds, so that they and transfers hide each other.
ExecutionGraph WithTimes(ExecutionGraph graph) {
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    graph.kernels[k].flops = 1e-6 * static_cast<double>(1 + (k * 7919) % 97) / 4;
  }
  return graph;
}

ReferenceTimes TimesOf(const RandomJob& random, const ReferenceLowering& reference) {
  ReferenceHost host{random.host.start_ps, random.host.launch_ps, random.host.sync_ps};
  host.slowdown_q20 = SlowdownQ20(1 + random.interference);
  return RunReference(reference, host, LinkSharing::kMaxMin,
                      SlowdownQ20(1 + random.comm_interference));
}

class WholeLanguageTest : public testing::TestWithParam<int> {
 protected:
  static uint32_t FirstSeed() {
    return static_cast<uint32_t>(TestSeed(1)) + static_cast<uint32_t>(GetParam()) * kSeedsPerSlice;
  }

  void Compare(uint32_t seed) {
    const RandomJob random = DrawJob(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << random.DebugString());
    const absl::StatusOr<Machine> shape = Machine::Create(UnitMachine(1, random.devices));
    ASSERT_TRUE(shape.ok()) << shape.status();
    Session session;
    const absl::StatusOr<PlanGraph> plan = DrawAndCompile(random.job, *shape, session);
    if (!plan.ok()) {
      const absl::StatusCode code = plan.status().code();
      EXPECT_TRUE(code == absl::StatusCode::kInvalidArgument ||
                  code == absl::StatusCode::kNotFound || code == absl::StatusCode::kUnimplemented)
          << plan.status();
      return;
    }
    const ExecutionGraph& graph = *plan->execution;
    const absl::Status verified = graph.Verify();
    ASSERT_TRUE(verified.ok()) << verified;
    ExpectBalancedMemory(graph);
    ExpectNoByteLost(graph);
    ExpectAllWork(random, graph);
    Simulate(seed, random, WithTimes(graph));
    const std::vector<ClassMemory> memory = ReplayMemory(graph, RuntimeParams());
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      EXPECT_EQ(memory[p].allocated, ReferencePeak(graph, static_cast<int32_t>(p)));
    }
    ++plans_;
    const PlanOptions& options = plan->chosen.options;
    spread_ += options.spreads_vocabulary();
    spread_sharded_ += options.spreads_vocabulary() && options.most_zero() >= 2;
    apart_sharded_ += options.splits_backward() && options.most_zero() >= 2;
    paired_sharded_ += options.most_zero() >= 2 && RunsPairs(graph);
    apart_copied_ += options.splits_backward() && CopiesToHost(graph);
    apart_quantized_ += options.splits_backward() && random.job.dtype != DType::kBf16;
    apart_kept_ += options.splits_backward() && !random.job.profile.tensors.op_memory.empty();
    apart_on_ranks_ += options.splits_backward() && random.job.strategy.NamesRanks();
    placed_on_ranks_ += !PlacementOf(options).Loops() && random.job.strategy.NamesRanks();
  }

  // Devices do at least the work of the model, and no more where the plan cuts all of it.
  void ExpectAllWork(const RandomJob& random, const ExecutionGraph& graph) {
    const absl::StatusOr<double> model = FlopsOfTheModel(random);
    ASSERT_TRUE(model.ok()) << model.status();
    const double sum = FlopsOfProducts(graph);
    EXPECT_GE(sum, *model * (1 - 1e-9));
    if (sum <= *model * (1 + 1e-9)) ++exact_;
  }

  void Simulate(uint32_t seed, const RandomJob& random, const ExecutionGraph& graph) {
    const absl::StatusOr<Machine> machine = Machine::Create(random.machine);
    ASSERT_TRUE(machine.ok()) << machine.status();
    const CommPricer::RealiseFn realise = RealiseOn(*machine, graph);
    const ReferenceLowering reference = LowerReference(graph, *machine, UnitCost(), realise);
    const ReferenceTimes times = TimesOf(random, reference);
    const auto run = [&](Form form, bool shortcuts) {
      return Simulation::Run(graph, *machine, realise, form, random.host, random.interference,
                             shortcuts, LinkSharing::kMaxMin, random.comm_interference);
    };
    const auto folded = run(Form::kFolded, true);
    ASSERT_FALSE(times.deadlock);  // a compiled plan never locks up
    ASSERT_TRUE(folded.ok()) << folded.status();
    ExpectSame(**folded, reference, times);
    for (size_t e = 0; e < (*folded)->sim().entities.size(); ++e) {
      EXPECT_EQ(
          BreakdownOf((*folded)->input(), (*folded)->trace(), static_cast<int32_t>(e)).total(),
          times.makespan_ps);
    }
    SimResult path;
    AttributeCriticalPath((*folded)->input(), (*folded)->trace(), path);
    EXPECT_EQ(path.critical_path.total(), times.makespan_ps);
    overlapping_ += graph.overlaps_iterations;
    if (seed % 4 == 0) {
      const auto without = run(seed % 8 == 0 ? Form::kFlat : Form::kFolded, false);
      ASSERT_TRUE(without.ok()) << without.status();
      ExpectSame(**without, reference, times);
    }
    ranks_ += static_cast<int64_t>(reference.ranks.size());
    classes_ += static_cast<int64_t>((*folded)->sim().entities.size());
    rules_.insert(random.rules.begin(), random.rules.end());
    on_some_ranks_ += random.job.strategy.NamesRanks();
    own_meshes_ += !graph.stage_meshes.empty();
    mixed_ += machine->mixed();
    units_ += HasUnits(random, graph);
    pieces_ += HasPieces(random);
  }

  // A kind that few plans are of, and how many are more than chance.
  struct Rare {
    const char* kind;
    int64_t seen, more_than;
    bool enough() const { return seen > more_than; }
  };
  std::vector<Rare> RareOnes() const {
    return {{"units of layers", units_, kPlansPerSlice / 100},
            {"iterations overlap", overlapping_, 0},
            {"vocabulary on all stages", spread_, kPlansPerSlice / 100},
            {"W beside zero 2 or 3", apart_sharded_, kPlansPerSlice / 200},
            {"pairs beside zero 2 or 3", paired_sharded_, kPlansPerSlice / 200},
            {"W beside activations on the host", apart_copied_, 0},
            {"W beside nodes on some ranks", apart_on_ranks_, 0},
            {"W in few bits", apart_quantized_, 0},
            {"W of software that keeps more", apart_kept_, 0},
            {"vocabulary on all stages with zero 2 or 3", spread_sharded_, 0},
            {"nodes on some ranks where layers turn back", placed_on_ranks_, 0}};
  }
  bool SawRareOnes() const {
    const std::vector<Rare> kinds = RareOnes();
    return std::all_of(kinds.begin(), kinds.end(), [](const Rare& rare) { return rare.enough(); });
  }

  int64_t plans_ = 0, ranks_ = 0, classes_ = 0, exact_ = 0, own_meshes_ = 0, mixed_ = 0,
          on_some_ranks_ = 0, units_ = 0, overlapping_ = 0, pieces_ = 0, spread_ = 0,
          apart_sharded_ = 0, apart_copied_ = 0, apart_on_ranks_ = 0, spread_sharded_ = 0,
          placed_on_ranks_ = 0, apart_quantized_ = 0, apart_kept_ = 0, paired_sharded_ = 0;
  std::set<std::string> rules_;  // of ops
};

INSTANTIATE_TEST_SUITE_P(Slices, WholeLanguageTest, testing::Range(0, kSlices));

TEST_P(WholeLanguageTest, FoldedEqualsFlatAndNothingIsLost) {
  uint32_t seed = FirstSeed();
  std::cout << "seeds from " << seed << "\n";
  int64_t drawn = 0;
  const auto enough = [&] {  // some more where chance has left out a kind
    return plans_ >= kPlansPerSlice && (SawRareOnes() || plans_ >= 2 * kPlansPerSlice);
  };
  for (; !enough() && !HasFailure(); ++seed, ++drawn) Compare(seed);
  std::cout << plans_ << " of " << drawn << " plans compared, " << ranks_ << " ranks in "
            << classes_ << " classes; " << own_meshes_ << " with stages of their own, " << mixed_
            << " on mixed machines, " << on_some_ranks_ << " with nodes on some ranks, " << exact_
            << " that do no work twice, " << units_ << " with units of several layers, "
            << overlapping_ << " whose iterations overlap, " << pieces_ << " with nodes in pieces, "
            << spread_ << " with the vocabulary on all stages, " << spread_sharded_
            << " of them with zero 2 or 3, " << placed_on_ranks_
            << " with nodes on some ranks where layers turn back or are there twice, "
            << apart_sharded_ << " with W beside zero 2 or 3, " << paired_sharded_
            << " with pairs beside that, " << apart_copied_
            << " with W beside activations on the host, " << apart_on_ranks_
            << " with W beside nodes on some ranks, " << apart_quantized_ << " with W in few bits, "
            << apart_kept_ << " with W of software that keeps more than rules say, "
            << rules_.size() << " ops\n";
  EXPECT_LT(classes_, ranks_);
  EXPECT_GT(own_meshes_, kPlansPerSlice / 10);
  EXPECT_GT(mixed_, kPlansPerSlice / 10);
  EXPECT_GT(exact_, kPlansPerSlice / 10);
  EXPECT_GT(pieces_, kPlansPerSlice / 10);
  for (const Rare& rare : RareOnes()) EXPECT_GT(rare.seen, rare.more_than) << rare.kind;
  EXPECT_LT(drawn, 4 * plans_);
  EXPECT_GT(rules_.size(), 100);  // of 200 and more
}

// Jumps over periods of the steady state change no digit.
TEST_P(WholeLanguageTest, ManyMicroBatches) {
  constexpr int kPlans = 12;
  constexpr size_t kMostMeetings = 4'000;
  int64_t plans = 0, jumped = 0;
  for (auto seed = FirstSeed(); plans < kPlans && !HasFailure(); ++seed) {
    const RandomJob random = DrawJob(seed, 12 + 12 * static_cast<int64_t>(seed % 3));
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << random.DebugString());
    const absl::StatusOr<Machine> shape = Machine::Create(UnitMachine(1, random.devices));
    ASSERT_TRUE(shape.ok()) << shape.status();
    Session session;
    const absl::StatusOr<PlanGraph> plan = DrawAndCompile(random.job, *shape, session);
    if (!plan.ok()) continue;
    const ExecutionGraph graph = WithTimes(*plan->execution);
    const absl::StatusOr<Machine> machine = Machine::Create(random.machine);
    ASSERT_TRUE(machine.ok()) << machine.status();
    const CommPricer::RealiseFn realise = RealiseOn(*machine, graph);
    const auto run = [&](bool shortcuts) {
      return Simulation::Run(graph, *machine, realise, Form::kFolded, random.host,
                             random.interference, shortcuts, LinkSharing::kMaxMin,
                             random.comm_interference);
    };
    const auto with = run(true), without = run(false);
    ASSERT_TRUE(with.ok()) << with.status();
    jumped += (*with)->trace().Periods() > 0;
    EXPECT_EQ((*without)->trace().Periods(), 0);
    ExpectSameTraces(**with, **without);
    ExpectSameAttribution(**with, **without);
    ++plans;
    // The reference looks at every meeting at every event.
    const ReferenceLowering reference = LowerReference(graph, *machine, UnitCost(), realise);
    if (seed % 4 != 0 || reference.meetings.size() > kMostMeetings) continue;
    ExpectSame(**with, reference, TimesOf(random, reference));
  }
  std::cout << jumped << " of " << plans << " simulations jumped\n";
  EXPECT_GT(jumped, 0);
}

}  // namespace
}  // namespace plancast
