// A vocabulary spread over the stages: the orders against the paper's counts, and what is compiled
// against the model that it is a part of.

#include "compiler/schedule/vocabulary_schedule.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

constexpr VocabParallel kWays[] = {VocabParallel::kInterlaced, VocabParallel::kVocab1,
                                   VocabParallel::kVocab2};

// Steps of one chunk and phase that a stage runs.
std::vector<int32_t> MicroBatchesOf(const Steps& steps, Phase phase, int32_t chunk) {
  std::vector<int32_t> found;
  for (const ScheduleStep& step : steps) {
    if (step.phase == phase && step.chunk == chunk) found.push_back(step.micro_batch);
  }
  return found;
}

std::vector<int32_t> UpTo(int64_t m) {
  std::vector<int32_t> all(m);
  for (int64_t i = 0; i < m; ++i) all[i] = static_cast<int32_t>(i);
  return all;
}

// Most micro-batches whose layers' activations a stage keeps.
int64_t MostInFlight(const Steps& steps) {
  int64_t now = 0, most = 0;
  for (const ScheduleStep& step : steps) {
    if (step.chunk != kLayersChunk) continue;
    now += step.phase == Phase::kForward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

// When the pipeline ends where F takes `forward`, B `backward`, a step of the output layer
// `vocabulary`, and exchanges nothing: written from who needs what. -1: stages wait for each other.
double Makespan(VocabParallel how, const std::vector<Steps>& stages, double forward,
                double backward, double vocabulary) {
  const auto p = static_cast<int64_t>(stages.size());
  using Key = std::tuple<int32_t, Phase, int64_t, int32_t>;  // chunk, phase, stage, micro-batch
  std::map<Key, double> done;
  std::vector<size_t> next(p, 0);
  std::vector<double> free_at(p, 0);
  const auto all = [&](int32_t chunk, Phase phase, int32_t m, std::vector<Key>* needs) {
    for (int64_t s = 0; s < p; ++s) needs->push_back({chunk, phase, s, m});
  };
  const bool at_once = how == VocabParallel::kInterlaced;
  const bool twice = how == VocabParallel::kVocab1;
  const auto needs_of = [&](const ScheduleStep& step, int64_t s) {
    std::vector<Key> needs;
    const int32_t m = step.micro_batch;
    if (step.chunk == kLayersChunk && step.phase == Phase::kForward) {
      if (s > 0) needs.push_back({kLayersChunk, Phase::kForward, s - 1, m});
      if (s == 0) all(kInputChunk, Phase::kForward, m, &needs);
    } else if (step.chunk == kLayersChunk) {
      if (s + 1 < p) needs.push_back({kLayersChunk, Phase::kBackward, s + 1, m});
      if (s + 1 == p) all(kOutputChunk, Phase::kBackward, m, &needs);
    } else if (step.chunk == kOutputChunk && step.phase == Phase::kForward) {
      needs.push_back({kLayersChunk, Phase::kForward, p - 1, m});
    } else if (step.chunk == kOutputChunk && step.phase == Phase::kBackward) {
      if (twice) all(kOutputChunk, Phase::kForward, m, &needs);
    } else if (step.chunk == kOutputChunk) {
      all(kOutputChunk, Phase::kBackward, m, &needs);
    } else if (step.phase == Phase::kBackward) {
      needs.push_back({kLayersChunk, Phase::kBackward, 0, m});
    }
    return needs;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t s = 0; s < p; ++s) {
      for (; next[s] < stages[s].size(); ++next[s]) {
        const ScheduleStep& step = stages[s][next[s]];
        double start = free_at[s];
        bool known = true;
        for (const Key& need : needs_of(step, s)) {
          const auto found = done.find(need);
          known = known && found != done.end();
          if (known) start = std::max(start, found->second);
        }
        if (!known) break;
        const double time = step.chunk == kInputChunk       ? 0
                            : step.chunk == kOutputChunk    ? vocabulary
                            : step.phase == Phase::kForward ? forward
                                                            : backward;
        free_at[s] = start + time;
        done[{step.chunk, step.phase, s, step.micro_batch}] = free_at[s];
        moved = true;
      }
      // Everyone waits for the sums.
      if (at_once && next[s] > 0) {
        const ScheduleStep& step = stages[s][next[s] - 1];
        if (step.chunk == kOutputChunk) free_at[s] = std::max(free_at[s], free_at[p - 1]);
      }
    }
  }
  for (int64_t s = 0; s < p; ++s) {
    if (next[s] < stages[s].size()) return -1;
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

TEST(VocabularyScheduleTest, StepsOfASmallPipeline) {
  const ScheduleTable one = VocabularySchedule(VocabParallel::kVocab2, 2, 3);
  EXPECT_EQ(ScheduleString(one.stages[1]),
            "F0.2 F1.2 F0.0 F0.1 B0.1 F2.2 F1.0 B0.0 W0.1 F1.1 B1.1 F2.0 B1.0 W1.1 F2.1 B2.1 B2.0 "
            "B0.2 W2.1 B1.2 B2.2");
  const ScheduleTable turns = VocabularySchedule(VocabParallel::kInterlaced, 2, 3);
  EXPECT_EQ(ScheduleString(turns.stages[1]),
            "F0.2 F0.0 F0.1 B0.1 F1.2 B0.0 F1.0 F1.1 B1.1 F2.2 B1.0 F2.0 F2.1 B2.1 B0.2 B2.0 B1.2 "
            "B2.2");
}

TEST(VocabularyScheduleTest, RunsEverythingOnceInOneOrderEverywhere) {
  for (const VocabParallel how : kWays) {
    for (const int64_t p : {2, 3, 4, 5, 8, 11, 16}) {
      for (const int64_t m : {1, 2, 3, 7, 16, 64}) {
        SCOPED_TRACE(testing::Message() << kVocabParallelNames[how] << " p " << p << " m " << m);
        const ScheduleTable table = VocabularySchedule(how, p, m);
        ASSERT_EQ(static_cast<int64_t>(table.stages.size()), p);
        const auto together = [](Steps steps) {
          steps.erase(
              std::remove_if(steps.begin(), steps.end(),
                             [](const ScheduleStep& step) { return step.chunk == kLayersChunk; }),
              steps.end());
          return ScheduleString(steps);
        };
        for (const Steps& steps : table.stages) {
          for (const int32_t chunk : {kLayersChunk, kOutputChunk, kInputChunk}) {
            EXPECT_EQ(MicroBatchesOf(steps, Phase::kForward, chunk), UpTo(m));
            EXPECT_EQ(MicroBatchesOf(steps, Phase::kBackward, chunk), UpTo(m));
          }
          const bool apart = how == VocabParallel::kVocab2;
          EXPECT_EQ(MicroBatchesOf(steps, Phase::kWeight, kOutputChunk), UpTo(apart ? m : 0));
          EXPECT_EQ(together(steps), together(table.stages[0]));
        }
        EXPECT_GT(Makespan(how, table.stages, 1, 2, 0.25), 0);
      }
    }
  }
}

// p + 1 micro-batches of the first stage's activations with one sum, p + 2 with two; 3/2 p where
// stages work at once.
TEST(VocabularyScheduleTest, HasThePapersActivations) {
  for (int64_t p = 2; p <= 16; ++p) {
    const int64_t m = 4 * p;
    SCOPED_TRACE(testing::Message() << "p " << p);
    const auto of = [&](VocabParallel how) { return VocabularySchedule(how, p, m).stages; };
    for (int64_t s = 0; s < p; ++s) {
      EXPECT_EQ(MostInFlight(of(VocabParallel::kVocab2)[s]), p - s + 1) << s;
      EXPECT_EQ(MostInFlight(of(VocabParallel::kVocab1)[s]), p - s + 2) << s;
    }
    EXPECT_EQ(MostInFlight(of(VocabParallel::kInterlaced)[0]), (3 * p - (p % 2)) / 2);
  }
}

// As long as 1F1B of layers alone, (m + p - 1)(F + B), and as much longer as the last stage goes
// back later, at most.
TEST(VocabularyScheduleTest, HasTheBubbleOf1f1b) {
  for (const VocabParallel how : {VocabParallel::kVocab1, VocabParallel::kVocab2}) {
    for (const int64_t p : {2, 3, 4, 6, 8, 12, 16}) {
      for (const int64_t m : {2 * p, 4 * p, 6 * p + 1}) {
        SCOPED_TRACE(testing::Message() << kVocabParallelNames[how] << " p " << p << " m " << m);
        const double end = Makespan(how, VocabularySchedule(how, p, m).stages, 1, 2, 0);
        EXPECT_GE(end, 3 * (m + p - 1));
        EXPECT_LE(end, 3 * (m + p - 1) + (how == VocabParallel::kVocab1 ? 6 : 3));
      }
    }
  }
}

// ---- through the compiler and the executor ----

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

PlanUnderTest Plan(VocabParallel how, int64_t layers, int64_t vocab, int64_t pp,
                   bool tied = false) {
  TransformerConfig config = Model(layers, vocab);
  config.tied_embeddings = tied;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.Pp(pp);
  plan.options().vocab_parallel = how;
  plan.options().layout.assign(pp, layers / pp);
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

TEST(SpreadVocabularyTest, FoldedEqualsFlat) {
  for (uint32_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const int64_t pp = 2 + dice.Below(4), layers = pp * (1 + dice.Below(2));
    const bool tied = dice.Maybe(3);
    PlanUnderTest plan = Plan(dice.Of<VocabParallel>({kWays[0], kWays[1], kWays[2]}), layers,
                              256 * (1 + dice.Below(4)) + dice.Below(2) * 7, pp, tied);
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
