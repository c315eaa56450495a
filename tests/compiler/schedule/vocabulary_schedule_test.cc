// A vocabulary spread over the stages: the orders against the paper's counts.

#include "compiler/schedule/vocabulary_schedule.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/schedule/placed_schedules.h"
#include "compiler/schedule/schedule_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

// With one chunk of layers a stage.
constexpr int32_t kLayersChunk = 0, kOutputChunk = 1, kInputChunk = 2;

ScheduleTable VocabularySchedule(VocabParallel how, int64_t stages, int64_t micro_batches) {
  return VocabularySchedule(how, Schedule::k1f1b, stages, micro_batches);
}

// Most chunks whose layers' activations a stage keeps, to their `last` pass.
int64_t MostInFlight(const Steps& steps, Phase last = Phase::kBackward, int32_t layers = 1) {
  int64_t now = 0, most = 0;
  for (const ScheduleStep& step : steps) {
    if (step.chunk >= layers) continue;
    now += step.phase == Phase::kForward ? 1 : step.phase == last ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

// Where layers run.
struct Layers {
  StagePlacement placement;
  double forward = 1, backward = 2, weights = 0;

  static Layers Loop(int64_t p) { return {StagePlacement::Loop(p, 1)}; }
  static Layers V(int64_t p) { return {StagePlacement::Waves(p, 2), 1, 1, 1}; }
  int32_t chunks() const { return static_cast<int32_t>(placement.chunks()); }
};

// When the pipeline ends where a step of the output layer takes `vocabulary`, and exchanges
// nothing: written from who needs what. -1: stages wait for each other.
double Makespan(VocabParallel how, const std::vector<Steps>& stages, const Layers& layers,
                double vocabulary) {
  const auto p = static_cast<int64_t>(stages.size());
  const int64_t last = layers.placement.virtual_stages() - 1;
  const int32_t output = layers.chunks(), input = output + 1;
  using Key = std::tuple<int32_t, Phase, int64_t, int32_t>;  // chunk, phase, stage, micro-batch
  std::map<Key, double> done;
  std::vector<size_t> next(p, 0);
  std::vector<double> free_at(p, 0);
  const auto all = [&](int32_t chunk, Phase phase, int32_t m, std::vector<Key>* needs) {
    for (int64_t s = 0; s < p; ++s) needs->push_back({chunk, phase, s, m});
  };
  const bool at_once = how == VocabParallel::kInterlaced;
  const bool twice = how == VocabParallel::kVocab1;
  const auto of_layers = [&](int64_t v, Phase phase, int32_t m) {
    return Key(layers.placement.ChunkOf(v), phase, layers.placement.StageOf(v), m);
  };
  const auto needs_of = [&](const ScheduleStep& step, int64_t s) {
    std::vector<Key> needs;
    const int32_t m = step.micro_batch;
    if (step.chunk < layers.chunks()) {
      if (step.phase == Phase::kWeight) {
        needs.push_back({step.chunk, Phase::kBackward, s, m});
        return needs;
      }
      const bool forward = step.phase == Phase::kForward;
      const int64_t before =
          layers.placement.Before(layers.placement.At(s, step.chunk), step.phase);
      if (before >= 0) {
        needs.push_back(of_layers(before, step.phase, m));
      } else {
        all(forward ? input : output, step.phase, m, &needs);
      }
    } else if (step.chunk == output && step.phase == Phase::kForward) {
      needs.push_back(of_layers(last, Phase::kForward, m));
    } else if (step.chunk == output && step.phase == Phase::kBackward) {
      if (twice) all(output, Phase::kForward, m, &needs);
    } else if (step.chunk == output) {
      all(output, Phase::kBackward, m, &needs);
    } else if (step.phase == Phase::kBackward) {
      needs.push_back(of_layers(0, Phase::kBackward, m));
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
        const double time = step.chunk == input              ? 0
                            : step.chunk == output           ? vocabulary
                            : step.phase == Phase::kForward  ? layers.forward
                            : step.phase == Phase::kBackward ? layers.backward
                                                             : layers.weights;
        free_at[s] = start + time;
        done[{step.chunk, step.phase, s, step.micro_batch}] = free_at[s];
        moved = true;
      }
      // Everyone waits for the sums.
      if (at_once && next[s] > 0) {
        const ScheduleStep& step = stages[s][next[s] - 1];
        if (step.chunk == output) free_at[s] = std::max(free_at[s], free_at[p - 1]);
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
        EXPECT_GT(Makespan(how, table.stages, Layers::Loop(p), 0.25), 0);
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
        const double end = Makespan(how, VocabularySchedule(how, p, m).stages, Layers::Loop(p), 0);
        EXPECT_GE(end, 3 * (m + p - 1));
        EXPECT_LE(end, 3 * (m + p - 1) + (how == VocabParallel::kVocab1 ? 6 : 3));
      }
    }
  }
}

constexpr VocabParallel kVisits[] = {VocabParallel::kVocab1, VocabParallel::kVocab2};
constexpr Schedule kBlocks[] = {Schedule::kZbVHalf, Schedule::kZbVMin};

TEST(VocabularyScheduleTest, BesideAVEverythingRunsOnceInOneOrderEverywhere) {
  for (const Schedule schedule : kBlocks) {
    for (const VocabParallel how : kVisits) {
      for (const int64_t p : {2, 3, 4, 5, 6, 8, 11, 16}) {
        for (const int64_t m : {1, 2, 3, 7, 16, 64}) {
          SCOPED_TRACE(testing::Message() << kScheduleNames[schedule] << " "
                                          << kVocabParallelNames[how] << " p " << p << " m " << m);
          const ScheduleTable table = VocabularySchedule(how, schedule, p, m);
          const auto together = [](Steps steps) {
            steps.erase(std::remove_if(steps.begin(), steps.end(),
                                       [](const ScheduleStep& step) { return step.chunk < 2; }),
                        steps.end());
            return ScheduleString(steps);
          };
          for (const Steps& steps : table.stages) {
            for (const int32_t chunk : {0, 1, 2, 3}) {
              EXPECT_EQ(MicroBatchesOf(steps, Phase::kForward, chunk), UpTo(m));
              EXPECT_EQ(MicroBatchesOf(steps, Phase::kBackward, chunk), UpTo(m));
              const bool apart = chunk < 2 || (chunk == 2 && how == VocabParallel::kVocab2);
              EXPECT_EQ(MicroBatchesOf(steps, Phase::kWeight, chunk), UpTo(apart ? m : 0));
            }
            EXPECT_EQ(together(steps), together(table.stages[0]));
          }
          EXPECT_GT(Makespan(how, table.stages, Layers::V(p), 0.25), 0);
        }
      }
    }
  }
}

// A micro-batch more in flight, of both chunks of a stage, for each sum; and no more time than that
// micro-batch takes beside the table without the vocabulary.
TEST(VocabularyScheduleTest, BesideAVOneMicroBatchMoreIsInFlightForEachSum) {
  for (const Schedule schedule : kBlocks) {
    for (int64_t p = 2; p <= 16; ++p) {
      const int64_t m = 6 * p;
      const StagePlacement v = StagePlacement::Waves(p, 2);
      const ScheduleTable alone = TableOfRule(schedule, v, m);
      ASSERT_OK_AND_ASSIGN(const ScheduleRun run,
                           RunSchedule(alone, m, PipelineTimes::Equal(v, PassTime())));
      int64_t before = 0;
      for (const Steps& steps : alone.stages) {
        before = std::max(before, MostInFlight(steps, Phase::kWeight, 2));
      }
      for (const VocabParallel how : kVisits) {
        SCOPED_TRACE(testing::Message()
                     << kScheduleNames[schedule] << " " << kVocabParallelNames[how] << " p " << p);
        const int64_t sums = how == VocabParallel::kVocab1 ? 2 : 1;
        const ScheduleTable table = VocabularySchedule(how, schedule, p, m);
        for (const Steps& steps : table.stages) {
          EXPECT_LE(MostInFlight(steps, Phase::kWeight, 2), before + 2 * sums);
        }
        const double end = Makespan(how, table.stages, Layers::V(p), 0);
        EXPECT_GE(end, 6 * m);
        EXPECT_LE(end, static_cast<double>(run.makespan) + 6 * sums + 6);
      }
    }
  }
}

}  // namespace
}  // namespace plancast
