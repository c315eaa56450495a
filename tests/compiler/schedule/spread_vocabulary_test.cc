// A vocabulary spread over the stages: what is compiled, against the model that it is a part of.

#include <cstdint>
#include <vector>

#include "executor/memory/allocator_replay.h"
#include "executor/memory/replay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/schedule/schedule.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/executor/memory/pytorch_allocator.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr VocabParallel kWays[] = {VocabParallel::kInterlaced, VocabParallel::kVocab1,
                                   VocabParallel::kVocab2};
constexpr VocabParallel kVisits[] = {VocabParallel::kVocab1, VocabParallel::kVocab2};
constexpr Schedule kBlocks[] = {Schedule::kZbVHalf, Schedule::kZbVMin};

TransformerConfig Model(int64_t layers, int64_t vocab) {
  TransformerConfig config = SmallLlama();
  config.layers = layers;
  config.hidden = 128;
  config.heads = config.kv_heads = 4;
  config.head_dim = 32;
  config.ffn = 256;
  config.vocab = vocab;
  config.seq = 64;
  config.tied_embeddings = false;
  return config;
}

PlanUnderTest Plan(VocabParallel how, int64_t layers, int64_t vocab, int64_t pp, bool tied = false,
                   Schedule schedule = Schedule::k1f1b) {
  TransformerConfig config = Model(layers, vocab);
  config.tied_embeddings = tied;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  const int64_t chunks = Turns(schedule) ? 2 : 1;
  plan.Pp(pp, schedule, chunks);
  plan.options().vocab_parallel = how;
  plan.options().layout.assign(pp * chunks, layers / (pp * chunks));
  return plan;
}

double ProductFlops(const ExecutionGraph& graph) {
  double flops = 0;
  for (const Program& program : graph.programs) {
    for (const Instance& instance : program.instances) {
      const Block& block = graph.blocks[instance.block];
      for (int32_t t = 0; t < block.size(); ++t) {
        if (block.kind[t] != TaskKind::kKernel) continue;
        const KernelSpec& kernel = graph.kernels[block.spec[t]];
        if (kernel.family != KernelFamily::kMemory) flops += kernel.flops * instance.layer_count;
      }
    }
  }
  return flops;
}

int64_t Sum(const std::vector<int64_t>& of) {
  int64_t sum = 0;
  for (const int64_t own : of) sum += own;
  return sum;
}

std::vector<int64_t> Statics(const ExecutionGraph& graph, MemoryKind kind) {
  std::vector<int64_t> bytes;
  for (const Program& program : graph.programs) {
    bytes.push_back(program.static_bytes[static_cast<int>(kind)]);
  }
  return bytes;
}

TEST(SpreadVocabularyTest, EachStageHasItsPartAndAllOfThemTheModel) {
  constexpr int64_t kPp = 4, kVocab = 4096, kHidden = 128;
  PlanUnderTest ends = Plan(VocabParallel::kEnds, 8, kVocab, kPp);
  ends.MicroBatches(1, 8);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, ends.Compile());
  for (const VocabParallel how : kWays) {
    SCOPED_TRACE(kVocabParallelNames[how]);
    PlanUnderTest plan = Plan(how, 8, kVocab, kPp);
    plan.MicroBatches(1, 8);
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph spread, plan.Compile());
    ASSERT_OK(spread.Verify());
    EXPECT_DOUBLE_EQ(ProductFlops(spread), ProductFlops(whole));
    for (const MemoryKind kind :
         {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kOptimizer}) {
      EXPECT_EQ(Sum(Statics(spread, kind)), Sum(Statics(whole, kind)));
    }
    // Two tables of V h in bf16; the last stage has the norm before the logits beside its part.
    const std::vector<int64_t> ends_have = Statics(whole, MemoryKind::kParameters);
    const std::vector<int64_t> have = Statics(spread, MemoryKind::kParameters);
    const int64_t table = 2 * kVocab * kHidden;
    EXPECT_EQ(have[0], ends_have[0] - table + 2 * table / kPp);
    EXPECT_EQ(have[1], ends_have[1] + 2 * table / kPp);
    EXPECT_EQ(have[3], ends_have[3] - table + 2 * table / kPp);
    // What an iteration allocates it gives up.
    for (const Program& program : spread.programs) {
      EXPECT_EQ(Left(spread, program, MemoryKind::kActivations),
                Left(whole, whole.programs[0], MemoryKind::kActivations))
          << program.name;
    }
  }
}

// Layers down the stages and up again, between parts of the vocabulary on all of them.
TEST(SpreadVocabularyTest, LayersMayTurnBack) {
  constexpr int64_t kPp = 4, kVocab = 4096, kHidden = 128;
  for (const Schedule schedule : kBlocks) {
    for (const bool tied : {false, true}) {
      PlanUnderTest ends = Plan(VocabParallel::kEnds, 8, kVocab, kPp, tied, schedule);
      ends.MicroBatches(1, 8);
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph whole, ends.Compile());
      for (const VocabParallel how : kVisits) {
        SCOPED_TRACE(kVocabParallelNames[how]);
        PlanUnderTest plan = Plan(how, 8, kVocab, kPp, tied, schedule);
        plan.MicroBatches(1, 8);
        ASSERT_OK_AND_ASSIGN(const ExecutionGraph spread, plan.Compile());
        ASSERT_OK(spread.Verify());
        EXPECT_DOUBLE_EQ(ProductFlops(spread), ProductFlops(whole));
        EXPECT_EQ(Sum(Statics(spread, MemoryKind::kParameters)),
                  Sum(Statics(whole, MemoryKind::kParameters)));
        // Both ends of the model are on the first stage.
        const std::vector<int64_t> had = Statics(whole, MemoryKind::kParameters);
        const std::vector<int64_t> have = Statics(spread, MemoryKind::kParameters);
        const int64_t tables = (tied ? 1 : 2) * 2 * kVocab * kHidden;
        EXPECT_EQ(have[0], had[0] - tables + tables / kPp);
        EXPECT_EQ(have[3], had[3] + tables / kPp);
        for (const Program& program : spread.programs) {
          EXPECT_EQ(Left(spread, program, MemoryKind::kActivations), 0) << program.name;
        }
      }
    }
  }
}

// Each stage has its part of the one table, and no gradients of it are summed with others.
TEST(SpreadVocabularyTest, TiedEmbeddingsAreOnePartOfEachStage) {
  constexpr int64_t kPp = 4, kVocab = 4096, kHidden = 128;
  for (const VocabParallel how : kWays) {
    SCOPED_TRACE(kVocabParallelNames[how]);
    PlanUnderTest two = Plan(how, 8, kVocab, kPp), one = Plan(how, 8, kVocab, kPp, /*tied=*/true);
    two.MicroBatches(1, 8);
    one.MicroBatches(1, 8);
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph apart, two.Compile());
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph tied, one.Compile());
    ASSERT_OK(tied.Verify());
    EXPECT_DOUBLE_EQ(ProductFlops(tied), ProductFlops(apart));
    const std::vector<int64_t> twice = Statics(apart, MemoryKind::kParameters);
    const std::vector<int64_t> once = Statics(tied, MemoryKind::kParameters);
    for (int64_t stage = 0; stage < kPp; ++stage) {
      EXPECT_EQ(once[stage], twice[stage] - 2 * kVocab * kHidden / kPp);
      EXPECT_EQ(tied.programs[stage].instances.size(), apart.programs[stage].instances.size());
      EXPECT_EQ(Left(tied, tied.programs[stage], MemoryKind::kActivations), 0);
    }
  }
}

// Bytes of a device's collectives over data-parallel ranks.
int64_t OverData(const ExecutionGraph& graph, const Program& program, CollectiveKind kind) {
  int64_t bytes = 0;
  for (const Instance& instance : program.instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kComm || block.purpose[t] != Purpose::kDp) continue;
      const CommSpec& comm = graph.comms[block.spec[t]];
      if (comm.kind == kind) bytes += comm.bytes * instance.layer_count;
    }
  }
  return bytes;
}

// Each part of the vocabulary is a unit of its stage: its gradients are reduced once, as those of
// layers are, and with zero=3 its parameters are gathered for each pass.
TEST(SpreadVocabularyTest, PartsAreShardedOverDataParallelRanks) {
  constexpr int64_t kPp = 4, kMicroBatches = 6;
  for (const VocabParallel how : kWays) {
    std::vector<ExecutionGraph> graphs;
    for (const int zero : {1, 2, 3}) {
      PlanUnderTest plan = Plan(how, 8, 4096, kPp);
      plan.Dp(2).MicroBatches(1, kMicroBatches).Zero1();
      plan.options().zero = zero;
      ASSERT_OK_AND_ASSIGN(graphs.emplace_back(), plan.Compile());
      ASSERT_OK(graphs.back().Verify());
    }
    for (size_t g = 1; g < graphs.size(); ++g) {
      SCOPED_TRACE(testing::Message() << kVocabParallelNames[how] << " zero=" << g + 1);
      EXPECT_DOUBLE_EQ(ProductFlops(graphs[g]), ProductFlops(graphs[0]));
      for (int64_t stage = 0; stage < kPp; ++stage) {
        const Program &first = graphs[0].programs[stage], &own = graphs[g].programs[stage];
        EXPECT_EQ(OverData(graphs[g], own, CollectiveKind::kReduceScatter),
                  OverData(graphs[0], first, CollectiveKind::kReduceScatter));
        for (const MemoryKind kind :
             {MemoryKind::kParameters, MemoryKind::kGradients, MemoryKind::kActivations}) {
          EXPECT_EQ(Left(graphs[g], own, kind), 0);
        }
        const int parameters = static_cast<int>(MemoryKind::kParameters);
        EXPECT_EQ(own.static_bytes[parameters] * (g == 2 ? 2 : 1), first.static_bytes[parameters]);
        // Forward and back, the input layer as a unit of its own, too.
        const int64_t all = first.static_bytes[parameters];
        const int64_t passes = kMicroBatches * 2 * all;
        EXPECT_EQ(OverData(graphs[g], own, CollectiveKind::kAllGather), g == 2 ? passes : all);
      }
    }
  }
}

TEST(SpreadVocabularyTest, TiedPartsAreNotSharded) {
  PlanUnderTest plan = Plan(kWays[0], 8, 4096, 4, /*tied=*/true);
  plan.Dp(2).MicroBatches(1, 4).options().zero = 2;
  EXPECT_THAT(plan.Compile().status().message(),
              testing::HasSubstr("zero=2 where chunks of one stage share a parameter"));
}

// The output layer goes back long before layers do, of which more and more are in flight.
TEST(SpreadVocabularyTest, BlocksAreReplayedUntilLayersGoBack) {
  for (const VocabParallel how : kWays) {
    for (const Schedule schedule : {Schedule::k1f1b, Schedule::kZbVHalf}) {
      if (how == VocabParallel::kInterlaced && schedule != Schedule::k1f1b) continue;
      SCOPED_TRACE(testing::Message()
                   << kVocabParallelNames[how] << " " << kScheduleNames[schedule]);
      PlanUnderTest plan = Plan(how, 16, 512, 8, /*tied=*/false, schedule);
      plan.MicroBatches(1, 48);
      ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
      const std::vector<ClassMemory> memory = ReplayMemory(graph, RuntimeParams());
      for (size_t p = 0; p < graph.programs.size(); ++p) {
        const AllocatorReplay blocks =
            ReplayAllocator(graph, static_cast<int32_t>(p), PyTorch(), {});
        EXPECT_GE(blocks.live, memory[p].allocated) << graph.programs[p].name;
      }
    }
  }
}

TEST(SpreadVocabularyTest, FoldedEqualsFlat) {
  for (uint32_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const int64_t pp = 2 + dice.Below(4), layers = pp * (1 + dice.Below(2));
    const bool tied = dice.Maybe(3);
    const auto how = dice.Of<VocabParallel>({kWays[0], kWays[1], kWays[2]});
    const int64_t vocab = 256 * (1 + dice.Below(4)) + dice.Below(2) * 7;
    const bool turns = how != VocabParallel::kInterlaced && seed % 2 == 0;
    PlanUnderTest plan = turns ? Plan(how, 2 * layers, vocab, pp, tied, kBlocks[seed / 2 % 2])
                               : Plan(how, layers, vocab, pp, tied);
    plan.Tp(1 + dice.Below(2)).Dp(1 + dice.Below(2));
    if (plan.options().tp > 1 && dice.Maybe(2)) plan.Sp();
    if (plan.options().dp > 1 && dice.Maybe(2)) plan.Zero1();
    if (plan.options().dp > 1 && !tied && dice.Maybe(2)) plan.options().zero = 2 + dice.Below(2);
    plan.MicroBatches(1 + dice.Below(2), 1 + dice.Below(12));
    plan.profile().pipeline.p2p_blocking = dice.Maybe(2);
    if (dice.Maybe(2)) plan.options().overlap.insert(Overlap::kGrad);
    const absl::StatusOr<ExecutionGraph> graph = CompileWithTimes(plan);
    ASSERT_OK(graph.status());
    ASSERT_OK(graph->Verify());
    ExpectFoldedEqualsFlat(dice, *graph);
  }
}

}  // namespace
}  // namespace plancast
