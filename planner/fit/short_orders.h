#ifndef PLANCAST_PLANNER_FIT_SHORT_ORDERS_H_
#define PLANCAST_PLANNER_FIT_SHORT_ORDERS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/program_plan.h"
#include "compiler/schedule/repeated_steps.h"

namespace plancast {

// What the stages of a plan do, turns that repeat others left out (repeated_steps.h).
struct PlanOrder {
  // Of each stage: whether it goes as the one before; its steps; and those with which a program
  // begins as with all of them, as far as ReplayAllocator goes: until the warm-up passes and three
  // more have gone back, by when as many again have begun.
  std::vector<bool> as_before;
  std::vector<ShortOrder> steps, placed;
  // Whether no stage has more in flight than those before it, and does but what they do.
  bool shrinks = false;
};

// Those of many plans, which share them where they run as many micro-batches in the same way: an
// order is made once.
class ShortOrders {
 public:
  // Valid until the next call.
  const PlanOrder& Of(const ProgramPlan& plan);

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<PlanOrder>> known_;
  size_t steps_ = 0;  // of all that are known
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_SHORT_ORDERS_H_
