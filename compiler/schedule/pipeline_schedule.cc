#include "compiler/schedule/pipeline_schedule.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strategy/schedule/interleaved_group.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

// All passes of one phase, micro-batches in groups of `group`, the last perhaps smaller, that each
// run through all chunks before the next group starts.
Steps GroupedOrder(Phase phase, int64_t micro_batches, int64_t chunks, int64_t group) {
  Steps order;
  order.reserve(micro_batches * chunks);
  for (int64_t begin = 0; begin < micro_batches; begin += group) {
    const int64_t end = std::min(begin + group, micro_batches);
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t chunk = phase == Phase::kForward ? c : chunks - 1 - c;
      for (int64_t m = begin; m < end; ++m) {
        order.push_back({phase, static_cast<int32_t>(m), static_cast<int32_t>(chunk)});
      }
    }
  }
  return order;
}

// `warmup` forwards, then one forward and one backward in turn, then the rest
// of the backwards.
Steps WarmSteadyCool(const Steps& forward, const Steps& backward, int64_t warmup) {
  const int64_t total = static_cast<int64_t>(forward.size());
  warmup = std::min(warmup, total);
  Steps steps(forward.begin(), forward.begin() + warmup);
  steps.reserve(2 * total);
  for (int64_t i = warmup; i < total; ++i) {
    steps.push_back(forward[i]);
    steps.push_back(backward[i - warmup]);
  }
  steps.insert(steps.end(), backward.end() - warmup, backward.end());
  return steps;
}

// The steps with the W of each backward pass behind the one that is `put_off` passes later.
Steps WithWeights(const Steps& steps, int64_t put_off) {
  Steps with;
  with.reserve(steps.size() * 3 / 2);
  std::deque<ScheduleStep> due;
  const auto make = [&] {
    with.push_back({Phase::kWeight, due.front().micro_batch, due.front().chunk});
    due.pop_front();
  };
  for (const ScheduleStep& step : steps) {
    with.push_back(step);
    if (step.phase != Phase::kBackward) continue;
    due.push_back(step);
    if (static_cast<int64_t>(due.size()) > put_off) make();
  }
  while (!due.empty()) make();
  return with;
}

}  // namespace

PipelineSchedule::PipelineSchedule(Schedule schedule, int64_t stages, int64_t micro_batches,
                                   int64_t chunks, int64_t ahead)
    : schedule_(schedule),
      stages_(stages),
      micro_batches_(micro_batches),
      chunks_(chunks),
      ahead_(ahead),
      group_(chunks > 1 && schedule == Schedule::kInterleaved
                 ? InterleavedGroup(stages, micro_batches)
                 : micro_batches),
      forward_(GroupedOrder(Phase::kForward, micro_batches, chunks, group_)),
      backward_(GroupedOrder(Phase::kBackward, micro_batches, chunks, group_)) {}

PipelineSchedule::PipelineSchedule(ScheduleTable table)
    : schedule_(Schedule::kTable),
      stages_(static_cast<int64_t>(table.stages.size())),
      micro_batches_(0),
      chunks_(0),
      ahead_(0),
      group_(0),
      table_(std::move(table)) {}

int64_t PipelineSchedule::WarmUp(int64_t stage) const {
  if (schedule_ == Schedule::kGpipe || schedule_ == Schedule::kBreadthFirst) {
    return micro_batches_ * chunks_;
  }
  if (schedule_ == Schedule::kEager1f1b) return (stages_ - stage) * 2 - 1;
  if (schedule_ == Schedule::kZb2p) return (stages_ - stage - 1) * 2;
  if (schedule_ == Schedule::kInterleaved && chunks_ > 1) {
    return (stages_ - stage - 1) * 2 + (chunks_ - 1) * group_ + ahead_;
  }
  return stages_ - stage - 1 + ahead_;
}

Steps PipelineSchedule::OfStage(int64_t stage) const {
  if (schedule_ == Schedule::kTable) return table_.stages[stage];
  const Steps steps = WarmSteadyCool(forward_, backward_, WarmUp(stage));
  return SplitsBackward(schedule_) ? WithWeights(steps, PutOff(stage)) : steps;
}

bool PipelineSchedule::Same(int64_t stage, int64_t other) const {
  if (schedule_ == Schedule::kTable) return table_.stages[stage] == table_.stages[other];
  if (SplitsBackward(schedule_)) return OfStage(stage) == OfStage(other);
  // The last forward pass is followed by backward passes whether it warms up or not.
  const int64_t most = micro_batches_ * chunks_ - 1;
  return std::min(WarmUp(stage), most) == std::min(WarmUp(other), most);
}

LastPasses::LastPasses(const std::vector<ScheduleStep>& steps, size_t chunks)
    : goes_back_(steps.size(), false) {
  std::vector<bool> later(chunks * (static_cast<size_t>(Phase::kWeight) + 1), false);
  for (size_t i = steps.size(); i-- > 0;) {
    if (steps[i].phase == Phase::kForward) continue;
    const size_t kind = static_cast<size_t>(steps[i].phase) * chunks + steps[i].chunk;
    goes_back_[i] = !later[kind];
    later[kind] = true;
  }
}

ScheduleTable WarmedUp(int64_t micro_batches, const std::vector<int64_t>& warm_ups) {
  const Steps forward = GroupedOrder(Phase::kForward, micro_batches, 1, micro_batches);
  const Steps backward = GroupedOrder(Phase::kBackward, micro_batches, 1, micro_batches);
  ScheduleTable table;
  for (const int64_t warm_up : warm_ups) {
    table.stages.push_back(WarmSteadyCool(forward, backward, warm_up));
  }
  return table;
}

Steps StageSchedule(Schedule schedule, int64_t stages, int64_t stage, int64_t micro_batches,
                    int64_t chunks) {
  return PipelineSchedule(schedule, stages, micro_batches, chunks).OfStage(stage);
}

std::string PipelineSchedule::DebugString() const {
  std::string text;
  for (int64_t s = 0; s < stages_; ++s) {
    absl::StrAppend(&text, "stage ", s, ": ", ScheduleString(OfStage(s)), "\n");
  }
  return text;
}

}  // namespace plancast
