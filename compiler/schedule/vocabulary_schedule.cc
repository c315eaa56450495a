#include "compiler/schedule/vocabulary_schedule.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/schedule/placed_schedules.h"
#include "compiler/schedule/schedule_run.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

const VocabularyChunks kChunks(1);  // with one chunk of layers

ScheduleStep Step(Phase phase, int64_t micro_batch, int32_t chunk) {
  return {phase, static_cast<int32_t>(micro_batch), chunk};
}

// When the input layer runs: at which visit (or turn) each micro-batch goes forward, and back.
struct InputTimes {
  std::vector<int64_t> forward, backward;  // ascending; negative: before all

  int32_t chunk;

  // What comes at visit `visit` and no other.
  void Append(Phase phase, int64_t visit, std::vector<ScheduleStep>* steps) const {
    const std::vector<int64_t>& times = phase == Phase::kForward ? forward : backward;
    const auto [begin, end] = std::equal_range(times.begin(), times.end(), visit);
    for (auto it = begin; it != end; ++it) {
      steps->push_back(Step(phase, it - times.begin(), chunk));
    }
  }
};

// One turn after the other.
class Interlaced {
 public:
  Interlaced(int64_t stages, int64_t micro_batches)
      : stages_(stages), micro_batches_(micro_batches), first_visit_((stages - 1) / 2) {}

  ScheduleTable Table() const {
    InputTimes input{{}, {}, kChunks.input()};
    for (int64_t m = 0; m < micro_batches_; ++m) {
      // The first stage goes forward in turn m.
      input.forward.push_back(m <= first_visit_ ? -1 : m - 1);
      input.backward.push_back(FirstBack(stages_ - 1) + m);
    }
    ScheduleTable table;
    for (int64_t stage = 0; stage < stages_; ++stage) {
      table.stages.push_back(OfStage(stages_ - 1 - stage, input));
    }
    return table;
  }

 private:
  // The turn of the first backward pass so many stages before the last.
  int64_t FirstBack(int64_t before_last) const { return first_visit_ + 1 + before_last; }

  std::vector<ScheduleStep> OfStage(int64_t before_last, const InputTimes& input) const {
    std::vector<ScheduleStep> steps;
    input.Append(Phase::kForward, -1, &steps);
    const auto append = [&](Phase phase, int64_t m) {
      if (m >= 0 && m < micro_batches_) steps.push_back(Step(phase, m, 0));
    };
    for (int64_t turn = 0; turn < FirstBack(stages_ - 1) + micro_batches_; ++turn) {
      const int64_t forward = turn - first_visit_ + before_last / 2;
      const int64_t backward = turn - FirstBack(before_last);
      if (before_last % 2 == 1) append(Phase::kForward, forward);
      append(Phase::kBackward, backward);
      if (before_last % 2 == 0) append(Phase::kForward, forward);
      const int64_t visit = turn - first_visit_;
      if (visit >= 0 && visit < micro_batches_) {
        steps.push_back(Step(Phase::kForward, visit, kChunks.output()));
        steps.push_back(Step(Phase::kBackward, visit, kChunks.output()));
      }
      input.Append(Phase::kForward, turn, &steps);
      input.Append(Phase::kBackward, turn, &steps);
    }
    return steps;
  }

  const int64_t stages_, micro_batches_;
  const int64_t first_visit_;  // its turn
};

// Passes of layers and visits of one stage, in their order. A visit is told as the forward pass of
// the output layer, the last one too.
using Ordered = std::vector<ScheduleStep>;

// A pass of layers, or a visit.
struct Timed {
  int64_t at = 0;  // half units
  ScheduleStep step;
};

Ordered InOrder(std::vector<Timed> timed) {
  std::stable_sort(timed.begin(), timed.end(),
                   [](const Timed& a, const Timed& b) { return a.at < b.at; });
  Ordered steps;
  steps.reserve(timed.size());
  for (const Timed& one : timed) steps.push_back(one.step);
  return steps;
}

// Visits among passes that begin when they would if a forward pass took one, a backward pass two
// units of time, a sum and a broadcast half a unit, and visits none. All is repeated every three
// units, and nothing waits: the last stage goes back with micro-batch i at 3 i. `ahead`: so many
// periods before that its forward pass ends.
std::vector<Ordered> VisitsOf1f1b(int64_t ahead, int64_t stages, int64_t micro_batches) {
  std::vector<Ordered> orders;
  for (int64_t before_last = stages - 1; before_last >= 0; --before_last) {
    std::vector<Timed> timed;
    timed.reserve(3 * micro_batches + 1);
    for (int64_t m = 0; m <= micro_batches; ++m) {
      const int64_t made = 6 * (m - ahead);  // by the last stage's layers
      // A pass that runs goes on first.
      timed.push_back({made + 1, Step(Phase::kForward, m, kChunks.output())});
      if (m == micro_batches) break;
      timed.push_back({made - 2 * before_last - 2, Step(Phase::kForward, m, 0)});
      timed.push_back({6 * m + 4 * before_last, Step(Phase::kBackward, m, 0)});
    }
    orders.push_back(InOrder(std::move(timed)));
  }
  return orders;
}

// Visits among the passes of a V, each of one unit.
class VisitsOfV {
 public:
  VisitsOfV(int64_t ahead, Schedule schedule, int64_t stages, int64_t micro_batches)
      : ahead_(ahead),
        micro_batches_(micro_batches),
        table_(TableOfVBlock(schedule, stages, micro_batches, ahead)),
        clock_(PipelineTimes::Equal(StagePlacement::Waves(stages, 2), Pass()), micro_batches,
               /*splits_backward=*/true),
        visits_(micro_batches + 1, -1) {}

  std::vector<Ordered> Orders() {
    std::vector<std::vector<Timed>> timed(table_.stages.size());
    std::vector<size_t> next(table_.stages.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < timed.size(); ++s) {
        const std::vector<ScheduleStep>& steps = table_.stages[s];
        for (; next[s] < steps.size() && Run(s, steps[next[s]], &timed[s]); ++next[s]) moved = true;
      }
    }
    std::vector<Ordered> orders;
    for (size_t s = 0; s < timed.size(); ++s) {
      PLANCAST_CHECK_EQ(next[s], table_.stages[s].size()) << "stages wait for each other";
      std::vector<Timed> all;
      all.reserve(timed[s].size() + visits_.size());
      // Ahead of what begins at that time.
      for (int64_t m = 0; m <= micro_batches_; ++m) {
        all.push_back({visits_[m], Step(Phase::kForward, m, VocabularyChunks(2).output())});
      }
      all.insert(all.end(), timed[s].begin(), timed[s].end());
      orders.push_back(InOrder(std::move(all)));
    }
    return orders;
  }

 private:
  static constexpr int64_t kUnit = 2;  // half units
  static PassTime Pass() {
    PassTime pass;
    pass.forward = pass.backward = pass.weights = kUnit;
    return pass;
  }

  // Where a V begins and ends.
  static bool Turns(size_t stage, const ScheduleStep& step, Phase phase) {
    return stage == 0 && step.chunk == 1 && step.phase == phase;
  }

  // False: what the step waits for has no time yet.
  bool Run(size_t stage, const ScheduleStep& step, std::vector<Timed>* timed) {
    const auto s = static_cast<int64_t>(stage);
    if (!clock_.Ready(s, step).has_value()) return false;
    int64_t from = 0;
    if (Turns(stage, step, Phase::kBackward)) {
      // With the second visit, or already with the first, its gradients are on their way.
      const int64_t visit = visits_[step.micro_batch + ahead_ - 1];
      if (visit < 0) return false;
      from = visit + kUnit / 2;
    }
    const int64_t end = clock_.Do(s, step, from);
    timed->push_back({end - kUnit, step});
    if (Turns(stage, step, Phase::kForward)) {
      visits_[step.micro_batch] = end + kUnit;
      // The last one has the time of two forward and two backward passes.
      if (step.micro_batch + 1 == micro_batches_) visits_.back() = end + 5 * kUnit;
    }
    return true;
  }

  const int64_t ahead_, micro_batches_;
  const ScheduleTable table_;
  PipelineClock clock_;
  std::vector<int64_t> visits_;  // when; -1: not known yet
};

// What stages do at visits, in between the passes of layers.
class AtVisits {
 public:
  AtVisits(VocabParallel how, const VocabularyChunks& chunks, int64_t micro_batches)
      : twice_(how == VocabParallel::kVocab1), chunks_(chunks), micro_batches_(micro_batches) {}

  ScheduleTable Table(const std::vector<Ordered>& stages) const {
    const InputTimes input = InputTimesOf(stages[0]);
    ScheduleTable table;
    for (const Ordered& stage : stages) table.stages.push_back(StepsOf(stage, input));
    return table;
  }

 private:
  // Of the stage that has the first layers as its first chunk.
  InputTimes InputTimesOf(const Ordered& first_stage) const {
    InputTimes input{{}, {}, chunks_.input()};
    int64_t visits = 0;  // so far
    for (const ScheduleStep& step : first_stage) {
      if (step.chunk == chunks_.output()) {
        ++visits;
      } else if (step.chunk == 0 && step.phase == Phase::kForward) {
        input.forward.push_back(std::max<int64_t>(visits - 2, -1));
      } else if (step.chunk == 0 && step.phase == Phase::kBackward) {
        // Others come to the next visit earlier.
        input.backward.push_back(visits + 1);
      }
    }
    return input;
  }

  std::vector<ScheduleStep> StepsOf(const Ordered& ordered, const InputTimes& input) const {
    std::vector<ScheduleStep> steps;
    input.Append(Phase::kForward, -1, &steps);
    for (const ScheduleStep& step : ordered) {
      if (chunks_.AreLayers(step.chunk)) {
        steps.push_back(step);
        continue;
      }
      const int64_t v = step.micro_batch;
      // Before what this visit sums, which others are not ready for.
      input.Append(Phase::kBackward, v, &steps);
      const Phase left = twice_ ? Phase::kBackward : Phase::kWeight;
      if (v > 0) steps.push_back(Step(left, v - 1, chunks_.output()));
      if (v < micro_batches_) {
        steps.push_back(step);
        if (!twice_) steps.push_back(Step(Phase::kBackward, v, chunks_.output()));
      }
      input.Append(Phase::kForward, v, &steps);
    }
    for (const int64_t after : {1, 2}) {
      input.Append(Phase::kBackward, micro_batches_ + after, &steps);
    }
    return steps;
  }

  const bool twice_;
  const VocabularyChunks chunks_;
  const int64_t micro_batches_;
};

}  // namespace

ScheduleTable VocabularySchedule(VocabParallel how, Schedule schedule, int64_t stages,
                                 int64_t micro_batches) {
  PLANCAST_CHECK(how != VocabParallel::kEnds);
  if (how == VocabParallel::kInterlaced) return Interlaced(stages, micro_batches).Table();
  // So many periods before its backward pass the forward pass of the last layers ends.
  const int64_t ahead = how == VocabParallel::kVocab1 ? 2 : 1;
  const bool turns = Turns(schedule);
  const AtVisits visits(how, VocabularyChunks(turns ? 2 : 1), micro_batches);
  return visits.Table(turns ? VisitsOfV(ahead, schedule, stages, micro_batches).Orders()
                            : VisitsOf1f1b(ahead, stages, micro_batches));
}

}  // namespace plancast
