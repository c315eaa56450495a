#include "compiler/schedule/schedule_run.h"

#include <algorithm>

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
    : times_(times),
      placement_(times.placement),
      micro_batches_(micro_batches),
      splits_(splits_backward),
      hops_(placement_.virtual_stages(), 0),
      stages_(times.stages()),
      forward_(placement_.virtual_stages() * micro_batches, -1),
      backward_(forward_) {
  for (int64_t v = 0; v < placement_.virtual_stages(); ++v) {
    const int64_t next = placement_.After(v, Phase::kForward);
    if (next >= 0) hops_[v] = HopOf(times, v, next);
  }
}

std::optional<int64_t> PipelineClock::Ready(int64_t stage, const ScheduleStep& step) const {
  const int64_t v = VirtualOf(stage, step), m = step.micro_batch;
  const auto after = [&](int64_t end, int64_t hop) -> std::optional<int64_t> {
    if (end < 0) return std::nullopt;
    return end + hop;
  };
  switch (step.phase) {
    case Phase::kForward: {
      const int64_t before = placement_.Before(v, Phase::kForward);
      return before < 0 ? 0 : after(EndOf(Phase::kForward, before, m), hops_[before]);
    }
    case Phase::kBackward: {
      const std::optional<int64_t> forward = after(EndOf(Phase::kForward, v, m), 0);
      const int64_t before = placement_.Before(v, Phase::kBackward);
      if (!forward.has_value() || before < 0) return forward;
      return after(EndOf(Phase::kBackward, before, m), hops_[v]);
    }
    default:
      return after(EndOf(Phase::kBackward, v, m), 0);
  }
}

int64_t PipelineClock::Takes(int64_t stage, const ScheduleStep& step) const {
  const PassTime& pass = times_.passes[VirtualOf(stage, step)];
  if (step.phase == Phase::kForward) return pass.forward;
  if (step.phase == Phase::kWeight) return pass.weights;
  return pass.recompute + (splits_ ? pass.backward : pass.WholeBackward());
}

int64_t PipelineClock::KeptDuring(int64_t stage, const ScheduleStep& step) const {
  const PassMemory& memory = times_.memory[VirtualOf(stage, step)];
  const int64_t kept = stages_[stage].kept;
  if (step.phase == Phase::kForward) return kept + memory.activations;
  if (step.phase != Phase::kBackward || !splits_) return kept;
  return kept + std::max<int64_t>(memory.for_weights - memory.activations, 0);
}

int64_t PipelineClock::Do(int64_t stage, const ScheduleStep& step, int64_t from) {
  Stage& s = stages_[stage];
  const int64_t v = VirtualOf(stage, step);
  const PassTime& pass = times_.passes[v];
  const PassMemory& memory = times_.memory[v];
  const int64_t ready = *Ready(stage, step);
  s.most_kept = std::max(s.most_kept, KeptDuring(stage, step));
  const int64_t free = std::max(s.free_at, from);
  int64_t begin = std::max(free, ready);
  int64_t end = begin + Takes(stage, step);
  if (step.phase == Phase::kBackward && pass.recompute > 0) {
    begin = std::max(free, EndOf(Phase::kForward, v, step.micro_batch));
    const int64_t rest = Takes(stage, step) - pass.recompute;
    end = std::max(begin + pass.recompute, ready) + rest;
  }
  switch (step.phase) {
    case Phase::kForward:
      s.kept += memory.activations;
      EndOf(Phase::kForward, v, step.micro_batch) = end;
      break;
    case Phase::kBackward:
      s.kept += (splits_ ? memory.for_weights : 0) - memory.activations;
      EndOf(Phase::kBackward, v, step.micro_batch) = end;
      break;
    default:
      s.kept -= memory.for_weights;
  }
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
  run.makespan += times_.all_reduce;
  return run;
}

absl::StatusOr<ScheduleRun> RunSchedule(const ScheduleTable& table, int64_t micro_batches,
                                        const PipelineTimes& times) {
  PipelineClock clock(times, micro_batches, ListsWeights(table));
  std::vector<size_t> next(times.stages(), 0);
  int64_t left = 0;
  for (const std::vector<ScheduleStep>& steps : table.stages) {
    left += static_cast<int64_t>(steps.size());
  }
  for (int64_t before = left + 1; left > 0 && left < before;) {
    before = left;
    for (int64_t s = 0; s < times.stages(); ++s) {
      const std::vector<ScheduleStep>& steps = table.stages[s];
      for (; next[s] < steps.size() && clock.Ready(s, steps[next[s]]).has_value(); ++next[s]) {
        clock.Do(s, steps[next[s]]);
        --left;
      }
    }
  }
  if (left > 0) return absl::InvalidArgumentError("the stages wait for each other.");
  return clock.Result();
}

}  // namespace plancast
