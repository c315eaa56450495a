#ifndef PLANCAST_PLANNER_FIT_SHORT_ORDERS_H_
#define PLANCAST_PLANNER_FIT_SHORT_ORDERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/program_plan.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/repeated_steps.h"
#include "strategy/plan_options.h"

namespace plancast {

// What the stages of a plan do, turns that repeat others left out (repeated_steps.h).
class PlanOrder {
 public:
  PlanOrder(PipelineSchedule schedule, int64_t stages)
      : schedule_(std::move(schedule)), steps_(stages), placed_(stages) {}

  // Whether the stage goes as the one before.
  bool AsBefore(int64_t stage) const { return schedule_.Same(stage, stage - 1); }
  // Whether no stage has more in flight than those before it, and does but what they do.
  bool Shrinks() const { return schedule_.WarmsUp(); }
  const ShortOrder& Steps(int64_t stage);
  // With these a program begins as with all, as far as ReplayAllocator goes: until the warm-up
  // passes and three more have gone back, by when as many again have begun.
  const ShortOrder& Placed(int64_t stage);

 private:
  const PipelineSchedule schedule_;
  std::vector<std::optional<ShortOrder>> steps_, placed_;  // of stages that were asked for
};

// Micro-batches with which a plan's schedule leads to the same short order as with all of them: of
// rules that come into their period soon. Others need all.
int64_t EnoughMicroBatches(const PlanOptions& options);

// Those of many plans, which share them where they run as many micro-batches in the same way: an
// order is made once.
class ShortOrders {
 public:
  // Valid until the next call.
  PlanOrder& Of(const ProgramPlan& plan);

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<PlanOrder>> known_;
  int64_t steps_ = 0;  // of all schedules that are known
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_SHORT_ORDERS_H_
