#include "compiler/schedule/unit_times.h"

#include <algorithm>
#include <deque>
#include <limits>

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

// All stages at their steps, one time after the other.
class Filler {
 public:
  Filler(const std::vector<Steps>& steps, const StagePlacement& placement, int64_t micro_batches,
         int64_t room)
      : steps_(steps),
        placement_(placement),
        micro_batches_(micro_batches),
        room_(room),
        over_(2 * placement.virtual_stages() * micro_batches, std::numeric_limits<int64_t>::max()),
        stages_(steps.size()),
        with_(steps.size()) {}

  std::vector<Steps> Run() {
    for (size_t s = 0; s < steps_.size(); ++s) with_[s].reserve(steps_[s].size() * 3 / 2);
    bool left = true;
    for (int64_t now = 0; left; ++now) {
      left = false;
      for (size_t s = 0; s < steps_.size(); ++s) left = Turn(s, now) || left;
    }
    return std::move(with_);
  }

 private:
  struct Stage {
    size_t next = 0;
    int64_t in_flight = 0;
    std::deque<ScheduleStep> due;  // W
  };

  int64_t& Over(Phase phase, int64_t v, int32_t micro_batch) {
    return over_[(static_cast<int64_t>(phase) * placement_.virtual_stages() + v) * micro_batches_ +
                 micro_batch];
  }

  bool Ready(size_t s, const ScheduleStep& step, int64_t now) {
    const int64_t v = placement_.At(static_cast<int64_t>(s), step.chunk);
    const int64_t before = placement_.Before(v, step.phase);
    const bool come = before < 0 || Over(step.phase, before, step.micro_batch) <= now;
    if (step.phase == Phase::kForward) return come;
    return come && Over(Phase::kForward, v, step.micro_batch) <= now;
  }

  // Whether the stage has anything left.
  bool Turn(size_t s, int64_t now) {
    Stage& stage = stages_[s];
    const bool more = stage.next < steps_[s].size();
    if (more && Ready(s, steps_[s][stage.next], now)) {
      const ScheduleStep& step = steps_[s][stage.next];
      const bool forward = step.phase == Phase::kForward;
      if (!forward || stage.in_flight < room_ || stage.due.empty()) {
        ++stage.next;
        stage.in_flight += forward ? 1 : 0;
        if (!forward) stage.due.push_back({Phase::kWeight, step.micro_batch, step.chunk});
        const int64_t v = placement_.At(static_cast<int64_t>(s), step.chunk);
        Over(step.phase, v, step.micro_batch) = now + 1;
        with_[s].push_back(step);
        return true;
      }
    }
    if (stage.due.empty()) return more;
    with_[s].push_back(stage.due.front());
    stage.due.pop_front();
    --stage.in_flight;
    return true;
  }

  const std::vector<Steps>& steps_;
  const StagePlacement& placement_;
  const int64_t micro_batches_, room_;
  std::vector<int64_t> over_;  // of each pass
  std::vector<Stage> stages_;
  std::vector<Steps> with_;
};

}  // namespace

std::vector<Steps> Repeated(const TimedSteps& block, int64_t group, int64_t period,
                            int64_t micro_batches) {
  std::vector<Steps> orders;
  for (const std::vector<TimedStep>& of_stage : block) {
    std::vector<TimedStep> all;
    for (int64_t first = 0, time = 0; first < micro_batches; first += group, time += period) {
      for (TimedStep timed : of_stage) {
        timed.time += time;
        timed.step.micro_batch += static_cast<int32_t>(first);
        if (timed.step.micro_batch < micro_batches) all.push_back(timed);
      }
    }
    std::sort(all.begin(), all.end(),
              [](const TimedStep& a, const TimedStep& b) { return a.time < b.time; });
    Steps& steps = orders.emplace_back();
    for (const TimedStep& timed : all) steps.push_back(timed.step);
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

std::vector<Steps> WithWeights(const std::vector<Steps>& steps, const StagePlacement& placement,
                               int64_t micro_batches, int64_t room) {
  return Filler(steps, placement, micro_batches, room).Run();
}

}  // namespace plancast
