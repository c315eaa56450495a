#include "compiler/schedule/vocabulary_schedule.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace plancast {
namespace {

ScheduleStep Step(Phase phase, int64_t micro_batch, int32_t chunk) {
  return {phase, static_cast<int32_t>(micro_batch), chunk};
}

// When the input layer runs: at which visit (or turn) each micro-batch goes forward, and back.
struct InputTimes {
  std::vector<int64_t> forward, backward;  // ascending; negative: before all

  // What comes at visit `visit` and no other.
  void Append(Phase phase, int64_t visit, std::vector<ScheduleStep>* steps) const {
    const std::vector<int64_t>& times = phase == Phase::kForward ? forward : backward;
    const auto [begin, end] = std::equal_range(times.begin(), times.end(), visit);
    for (auto it = begin; it != end; ++it) {
      steps->push_back(Step(phase, it - times.begin(), kInputChunk));
    }
  }
};

// One turn after the other.
class Interlaced {
 public:
  Interlaced(int64_t stages, int64_t micro_batches)
      : stages_(stages), micro_batches_(micro_batches), first_visit_((stages - 1) / 2) {}

  ScheduleTable Table() const {
    InputTimes input;
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
      if (m >= 0 && m < micro_batches_) steps.push_back(Step(phase, m, kLayersChunk));
    };
    for (int64_t turn = 0; turn < FirstBack(stages_ - 1) + micro_batches_; ++turn) {
      const int64_t forward = turn - first_visit_ + before_last / 2;
      const int64_t backward = turn - FirstBack(before_last);
      if (before_last % 2 == 1) append(Phase::kForward, forward);
      append(Phase::kBackward, backward);
      if (before_last % 2 == 0) append(Phase::kForward, forward);
      const int64_t visit = turn - first_visit_;
      if (visit >= 0 && visit < micro_batches_) {
        steps.push_back(Step(Phase::kForward, visit, kOutputChunk));
        steps.push_back(Step(Phase::kBackward, visit, kOutputChunk));
      }
      input.Append(Phase::kForward, turn, &steps);
      input.Append(Phase::kBackward, turn, &steps);
    }
    return steps;
  }

  const int64_t stages_, micro_batches_;
  const int64_t first_visit_;  // its turn
};

// Visits among passes that begin when they would if a forward pass took one, a backward pass two
// units of time, a sum and a broadcast half a unit, and visits none. All is repeated every three
// units, and nothing waits: the last stage goes back with micro-batch i at 3 i.
class Visits {
 public:
  Visits(int64_t ahead, int64_t stages, int64_t micro_batches)
      : ahead_(ahead), stages_(stages), micro_batches_(micro_batches) {}

  ScheduleTable Table() const {
    const InputTimes input = InputTimesOf(Ordered(0));
    ScheduleTable table;
    for (int64_t s = 0; s < stages_; ++s) table.stages.push_back(StepsOf(Ordered(s), input));
    return table;
  }

 private:
  // A pass of layers, or a visit, as a forward pass of the output layer.
  struct Timed {
    int64_t at = 0;  // half units
    ScheduleStep step;
  };

  std::vector<ScheduleStep> Ordered(int64_t stage) const {
    const int64_t before_last = stages_ - 1 - stage;
    std::vector<Timed> timed;
    timed.reserve(3 * micro_batches_ + 1);
    for (int64_t m = 0; m <= micro_batches_; ++m) {
      const int64_t made = 6 * (m - ahead_);  // by the last stage's layers
      // A pass that runs goes on first.
      timed.push_back({made + 1, Step(Phase::kForward, m, kOutputChunk)});
      if (m == micro_batches_) break;
      timed.push_back({made - 2 * before_last - 2, Step(Phase::kForward, m, kLayersChunk)});
      timed.push_back({6 * m + 4 * before_last, Step(Phase::kBackward, m, kLayersChunk)});
    }
    std::stable_sort(timed.begin(), timed.end(),
                     [](const Timed& a, const Timed& b) { return a.at < b.at; });
    std::vector<ScheduleStep> steps;
    steps.reserve(timed.size());
    for (const Timed& one : timed) steps.push_back(one.step);
    return steps;
  }

  static InputTimes InputTimesOf(const std::vector<ScheduleStep>& first_stage) {
    InputTimes input;
    int64_t visits = 0;  // so far
    for (const ScheduleStep& step : first_stage) {
      if (step.chunk == kOutputChunk) {
        ++visits;
      } else if (step.phase == Phase::kForward) {
        input.forward.push_back(std::max<int64_t>(visits - 2, -1));
      } else {
        // Others come to the next visit earlier.
        input.backward.push_back(visits + 1);
      }
    }
    return input;
  }

  std::vector<ScheduleStep> StepsOf(const std::vector<ScheduleStep>& ordered,
                                    const InputTimes& input) const {
    const bool twice = ahead_ == 2;
    std::vector<ScheduleStep> steps;
    input.Append(Phase::kForward, -1, &steps);
    for (const ScheduleStep& step : ordered) {
      if (step.chunk == kLayersChunk) {
        steps.push_back(step);
        continue;
      }
      const int64_t v = step.micro_batch;
      // Before what this visit sums, which others are not ready for.
      input.Append(Phase::kBackward, v, &steps);
      const Phase left = twice ? Phase::kBackward : Phase::kWeight;
      if (v > 0) steps.push_back(Step(left, v - 1, kOutputChunk));
      if (v < micro_batches_) {
        steps.push_back(step);
        if (!twice) steps.push_back(Step(Phase::kBackward, v, kOutputChunk));
      }
      input.Append(Phase::kForward, v, &steps);
    }
    for (const int64_t after : {1, 2}) {
      input.Append(Phase::kBackward, micro_batches_ + after, &steps);
    }
    return steps;
  }

  const int64_t ahead_;  // of its backward pass, in periods, the last stage's forward pass ends
  const int64_t stages_, micro_batches_;
};

}  // namespace

ScheduleTable VocabularySchedule(VocabParallel how, int64_t stages, int64_t micro_batches) {
  PLANCAST_CHECK(how != VocabParallel::kEnds);
  if (how == VocabParallel::kInterlaced) return Interlaced(stages, micro_batches).Table();
  return Visits(how == VocabParallel::kVocab1 ? 2 : 1, stages, micro_batches).Table();
}

}  // namespace plancast
