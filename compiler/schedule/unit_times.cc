#include "compiler/schedule/unit_times.h"

#include <algorithm>

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

// Slots of a period that nothing takes yet.
class FreeSlots {
 public:
  explicit FreeSlots(int64_t period) : next_(period + 1) {
    for (size_t i = 0; i < next_.size(); ++i) next_[i] = static_cast<int32_t>(i);
  }

  // The first time from `time` on whose slot is free; takes it. One is.
  int64_t Take(int64_t time) {
    const int64_t period = static_cast<int64_t>(next_.size()) - 1, slot = time % period;
    int64_t at = Find(slot);
    if (at == period) {
      time += period - slot;
      at = Find(0);
      time += at;
    } else {
      time += at - slot;
    }
    next_[at] = static_cast<int32_t>(at + 1);
    return time;
  }

 private:
  int32_t Find(int64_t slot) {
    int32_t root = static_cast<int32_t>(slot);
    while (next_[root] != root) root = next_[root];
    while (next_[slot] != root) {
      const int32_t behind = next_[slot];
      next_[slot] = root;
      slot = behind;
    }
    return root;
  }

  std::vector<int32_t> next_;  // the slot itself where it is free, else one further on
};

}  // namespace

std::vector<Steps> Repeated(const TimedSteps& block, int64_t group, int64_t period,
                            int64_t micro_batches) {
  std::vector<Steps> orders;
  const int64_t groups = (micro_batches + group - 1) / group;
  for (std::vector<TimedStep> of_stage : block) {
    // Within any period, steps of the block go in the order of their places in it.
    std::sort(of_stage.begin(), of_stage.end(), [&](const TimedStep& a, const TimedStep& b) {
      return a.time % period < b.time % period;
    });
    int64_t last = 0;  // period in which any begins
    for (TimedStep& timed : of_stage) last = std::max(last, timed.time /= period);
    Steps& steps = orders.emplace_back();
    steps.reserve(of_stage.size() * groups);
    for (int64_t turn = 0; turn < groups + last; ++turn) {
      for (const TimedStep& timed : of_stage) {
        const int64_t first = (turn - timed.time) * group;
        ScheduleStep step = timed.step;
        step.micro_batch += static_cast<int32_t>(first);
        if (first >= 0 && step.micro_batch < micro_batches) steps.push_back(step);
      }
    }
  }
  return orders;
}

TimedSteps PackedChains(const StagePlacement& placement, int64_t micro_batches, int64_t period) {
  TimedSteps packed(placement.stages());
  std::vector<FreeSlots> free(placement.stages(), FreeSlots(period));
  for (int64_t m = 0; m < micro_batches; ++m) {
    int64_t time = 0, v = m % placement.copies() * placement.depth();
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      for (int64_t next = v; next >= 0; next = placement.After(v, phase)) {
        v = next;
        const int64_t s = placement.StageOf(v);
        const int64_t at = free[s].Take(time);
        packed[s].push_back({at, {phase, static_cast<int32_t>(m), placement.ChunkOf(v)}});
        time = at + 1;
      }
    }
  }
  return packed;
}

}  // namespace plancast
