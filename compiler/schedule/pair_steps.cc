#include "compiler/schedule/pair_steps.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

int64_t MicroBatchesOf(const ScheduleTable& table) {
  int32_t most = 0;
  for (const Steps& steps : table.stages) {
    for (const ScheduleStep& step : steps) most = std::max(most, step.micro_batch + 1);
  }
  return most;
}

// The stages together, each as far as it gets.
class Pairing {
 public:
  Pairing(ScheduleTable table, const StagePlacement& placement)
      : table_(std::move(table)),
        placement_(placement),
        micro_batches_(MicroBatchesOf(table_)),
        next_(table_.stages.size()),
        done_(2 * placement.virtual_stages() * micro_batches_, false) {
    for (Steps& steps : table_.stages) {
      for (size_t i = 0; i + 1 < steps.size(); ++i) {
        steps[i].pairs = steps[i].phase == Phase::kForward &&
                         steps[i + 1].phase == Phase::kBackward &&
                         steps[i].micro_batch != steps[i + 1].micro_batch;
      }
    }
  }

  ScheduleTable Take() && {
    do {
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t s = 0; s < next_.size(); ++s) {
          while (Do(s)) moved = true;
        }
      }
    } while (PartOne());
    return std::move(table_);
  }

 private:
  size_t Index(Phase phase, int64_t v, int32_t micro_batch) const {
    const int64_t way = phase == Phase::kForward ? 0 : 1;
    return (way * placement_.virtual_stages() + v) * micro_batches_ + micro_batch;
  }

  bool Ready(size_t s, const ScheduleStep& step) const {
    if (step.phase == Phase::kWeight) return true;
    const int64_t v = placement_.At(static_cast<int64_t>(s), step.chunk);
    const int64_t before = placement_.Before(v, step.phase);
    return before < 0 || done_[Index(step.phase, before, step.micro_batch)];
  }

  // What the stage does next, if it can.
  bool Do(size_t s) {
    const Steps& steps = table_.stages[s];
    if (next_[s] == steps.size()) return false;
    const size_t end = next_[s] + (steps[next_[s]].pairs ? 2 : 1);
    for (size_t i = next_[s]; i < end; ++i) {
      if (!Ready(s, steps[i])) return false;
    }
    for (; next_[s] < end; ++next_[s]) {
      const ScheduleStep& step = steps[next_[s]];
      if (step.phase == Phase::kWeight) continue;
      const int64_t v = placement_.At(static_cast<int64_t>(s), step.chunk);
      done_[Index(step.phase, v, step.micro_batch)] = true;
    }
    return true;
  }

  bool PartOne() {
    for (size_t s = 0; s < next_.size(); ++s) {
      if (next_[s] == table_.stages[s].size()) continue;
      ScheduleStep& step = table_.stages[s][next_[s]];
      if (!step.pairs || !Ready(s, step)) continue;
      step.pairs = false;
      return true;
    }
    return false;
  }

  ScheduleTable table_;
  const StagePlacement& placement_;
  const int64_t micro_batches_;
  std::vector<size_t> next_;  // step, per stage
  std::vector<bool> done_;    // by phase, virtual stage and micro-batch
};

}  // namespace

ScheduleTable WithPairs(ScheduleTable table, const StagePlacement& placement) {
  return Pairing(std::move(table), placement).Take();
}

}  // namespace plancast
