#include "compiler/schedule/schedule_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"

namespace plancast {
namespace {

int64_t HopOf(const PipelineTimes& times, int64_t from, int64_t to) {
  const int64_t stages = times.stages();
  const auto [near, far] =
      std::minmax({times.placement.StageOf(from), times.placement.StageOf(to)});
  if (near == far) return 0;
  // Two stages in a loop are neighbours both ways.
  const bool around =
      near == 0 && far == stages - 1 &&
      (stages > 2 || (times.placement.Loops() && times.placement.StageOf(from) == far));
  if (around) return times.transfer[far];
  if (far - near == 1) return times.transfer[near];
  return *std::max_element(times.transfer.begin(), times.transfer.end());
}

}  // namespace

PipelineTimes PipelineTimes::Equal(const StagePlacement& placement, const PassTime& pass,
                                   int64_t transfer) {
  PipelineTimes times;
  times.placement = placement;
  times.passes.assign(placement.virtual_stages(), pass);
  times.memory.assign(placement.virtual_stages(), PassMemory());
  times.transfer.assign(placement.stages(), transfer);
  return times;
}

PipelineClock::PipelineClock(const PipelineTimes& times, int64_t micro_batches,
                             bool splits_backward)
    : chunks_(times.chunks()),
      all_reduce_(times.all_reduce),
      stages_(times.stages()),
      at_(times.placement.virtual_stages()),
      ends_(2 * times.placement.virtual_stages() * micro_batches, -1) {
  static_assert(static_cast<int>(Phase::kForward) == 0 && static_cast<int>(Phase::kBackward) == 1 &&
                static_cast<int>(Phase::kWeight) == 2);
  const StagePlacement& placement = times.placement;
  const int64_t all = placement.virtual_stages();
  for (int64_t v = 0; v < all; ++v) {
    const PassTime& pass = times.passes[v];
    VirtualStage& at = at_[placement.StageOf(v) * chunks_ + placement.ChunkOf(v)];
    at.stage = placement.StageOf(v);
    at.takes[0] = pass.forward;
    at.takes[1] = pass.recompute + (splits_backward ? pass.backward : pass.WholeBackward());
    at.takes[2] = pass.weights;
    at.recompute = pass.recompute;
    const PassMemory& memory = times.memory[v];
    const int64_t for_weights = splits_backward ? memory.for_weights : 0;
    at.keeps[0] = memory.activations;
    if (splits_backward) at.keeps[1] = std::max<int64_t>(for_weights - memory.activations, 0);
    at.leaves[0] = memory.activations;
    at.leaves[1] = for_weights - memory.activations;
    at.leaves[2] = -memory.for_weights;
    at.forward = v * micro_batches;
    at.backward = (all + v) * micro_batches;
    if (const int64_t before = placement.Before(v, Phase::kForward); before >= 0) {
      at.before_forward = before * micro_batches;
      at.hop_forward = HopOf(times, before, v);
    }
    if (const int64_t before = placement.Before(v, Phase::kBackward); before >= 0) {
      at.before_backward = (all + before) * micro_batches;
      at.hop_backward = HopOf(times, v, before);
    }
  }
}

int64_t PipelineClock::Do(const VirtualStage& at, const ScheduleStep& step, int64_t ready,
                          int64_t from) {
  Stage& s = stages_[at.stage];
  const int phase = static_cast<int>(step.phase);
  const int64_t free = std::max(s.free_at, from), takes = at.takes[phase];
  int64_t begin = std::max(free, ready);
  int64_t end = begin + takes;
  if (step.phase == Phase::kForward) {
    ends_[at.forward + step.micro_batch] = end;
  } else if (step.phase == Phase::kBackward) {
    if (at.recompute > 0) {
      begin = std::max(free, ends_[at.forward + step.micro_batch]);
      end = std::max(begin + at.recompute, ready) + takes - at.recompute;
    }
    ends_[at.backward + step.micro_batch] = end;
  }
  s.most_kept = std::max(s.most_kept, s.kept + at.keeps[phase]);
  s.kept += at.leaves[phase];
  if (s.begin < 0) s.begin = begin;
  s.free_at = end;
  return end;
}

ScheduleRun PipelineClock::Result() const {
  ScheduleRun run;
  for (const Stage& stage : stages_) {
    run.makespan = std::max(run.makespan, stage.free_at);
    run.longest_stage =
        std::max(run.longest_stage, stage.free_at - std::max<int64_t>(stage.begin, 0));
    run.most_kept.push_back(stage.most_kept);
  }
  run.makespan += all_reduce_;
  return run;
}

std::optional<ScheduleRun> RunWithin(int64_t most, const ScheduleTable& table,
                                     int64_t micro_batches, const PipelineTimes& times) {
  PipelineClock clock(times, micro_batches, ListsWeights(table));
  std::vector<size_t> next(times.stages(), 0);
  std::vector<int64_t> ahead(times.stages(), 0);  // what the steps of a stage take that are left
  int64_t left = 0;
  for (int64_t s = 0; s < times.stages(); ++s) {
    for (const ScheduleStep& step : table.stages[s]) ahead[s] += clock.Takes(s, step);
    left += static_cast<int64_t>(table.stages[s].size());
  }
  for (int64_t before = left + 1; left > 0 && left < before;) {
    before = left;
    for (int64_t s = 0; s < times.stages(); ++s) {
      const std::vector<ScheduleStep>& steps = table.stages[s];
      const size_t first = next[s];
      for (; next[s] < steps.size() && clock.TryDo(s, steps[next[s]]); ++next[s]) {
        ahead[s] -= clock.Takes(s, steps[next[s]]);
      }
      left -= static_cast<int64_t>(next[s] - first);
      if (ahead[s] > most - times.all_reduce - clock.FreeAt(s)) return std::nullopt;
    }
  }
  return left > 0 ? std::nullopt : std::make_optional(clock.Result());
}

absl::StatusOr<ScheduleRun> RunSchedule(const ScheduleTable& table, int64_t micro_batches,
                                        const PipelineTimes& times) {
  constexpr int64_t kAnyTime = std::numeric_limits<int64_t>::max();
  std::optional<ScheduleRun> run = RunWithin(kAnyTime, table, micro_batches, times);
  if (!run.has_value()) return absl::InvalidArgumentError("the stages wait for each other.");
  return *std::move(run);
}

}  // namespace plancast
