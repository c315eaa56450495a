#include "planner/fit/short_orders.h"

#include <algorithm>
#include <utility>

#include "base/memo_key.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "strategy/plan_options.h"

namespace plancast {
namespace {

using Steps = std::vector<ScheduleStep>;

constexpr size_t kMostSteps = size_t{1} << 21;  // 32 MB, before all are forgotten

// All that ProgramPlan::Schedule depends on.
std::string KeyOf(const PlanOptions& options) {
  std::string key;
  AppendKey(options.schedule, &key);
  AppendKey(options.pp, &key);
  AppendKey(options.vpp, &key);
  AppendKey(options.micro_batches, &key);
  AppendKey(options.most_ongoing, &key);
  AppendKey(options.vocab_parallel, &key);
  AppendKey(options.makes_pairs(), &key);
  AppendKey(options.schedule_table, &key);
  return key;
}

// How many steps ReplayAllocator looks at, or more.
size_t UntilPlaced(const Steps& steps) {
  const auto goes_back = [](const ScheduleStep& step) { return step.phase != Phase::kForward; };
  const auto first = std::find_if(steps.begin(), steps.end(), goes_back);
  int32_t begun = -1;
  for (auto it = steps.begin(); it != first; ++it) begun = std::max(begun, it->micro_batch);
  const auto enough = std::find_if(first, steps.end(), [&](const ScheduleStep& step) {
    return goes_back(step) && step.micro_batch >= begun + 4;
  });
  return enough == steps.end() ? steps.size() : enough - steps.begin() + 1;
}

PlanOrder OrderOf(const ProgramPlan& plan) {
  const PlanOptions& options = *plan.request->options;
  const PipelineSchedule schedule = plan.Schedule(options.micro_batches);
  PlanOrder order;
  order.shrinks = schedule.WarmsUp();
  for (int64_t stage = 0; stage < options.pp; ++stage) {
    const bool as_before = stage > 0 && schedule.Same(stage, stage - 1);
    order.as_before.push_back(as_before);
    if (as_before) {
      order.steps.push_back(order.steps.back());
      order.placed.push_back(order.placed.back());
      continue;
    }
    Steps steps = schedule.OfStage(stage);
    const size_t until = UntilPlaced(steps);
    order.placed.push_back(Shortened(steps, until, options.pp));
    order.steps.push_back(Shortened(std::move(steps), 0, options.pp));
  }
  return order;
}

}  // namespace

const PlanOrder& ShortOrders::Of(const ProgramPlan& plan) {
  std::string key = KeyOf(*plan.request->options);
  if (const auto known = known_.find(key); known != known_.end()) return *known->second;
  auto order = std::make_unique<PlanOrder>(OrderOf(plan));
  for (size_t s = 0; s < order->steps.size(); ++s) {
    steps_ += order->steps[s].steps.size() + order->placed[s].steps.size();
  }
  if (steps_ > kMostSteps) {
    known_.clear();
    steps_ = 0;
  }
  return *(known_[std::move(key)] = std::move(order));
}

}  // namespace plancast
