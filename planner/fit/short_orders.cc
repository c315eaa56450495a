#include "planner/fit/short_orders.h"

#include <algorithm>
#include <utility>

#include "base/memo_key.h"

namespace plancast {
namespace {

using StageSteps = std::vector<ScheduleStep>;

constexpr int64_t kPhases = 3;           // F, B, W
constexpr int64_t kMostSteps = 1 << 21;  // 32 MB, before all are forgotten

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
size_t UntilPlaced(const StageSteps& steps) {
  const auto goes_back = [](const ScheduleStep& step) { return step.phase != Phase::kForward; };
  const auto first = std::find_if(steps.begin(), steps.end(), goes_back);
  int32_t begun = -1;
  for (auto it = steps.begin(); it != first; ++it) begun = std::max(begun, it->micro_batch);
  const auto enough = std::find_if(first, steps.end(), [&](const ScheduleStep& step) {
    return goes_back(step) && step.micro_batch >= begun + 4;
  });
  return enough == steps.end() ? steps.size() : enough - steps.begin() + 1;
}

// Micro-batches after which a rule does what it did; 0: it need not.
int64_t PeriodOf(const PlanOptions& options) {
  if (!options.schedule_table.empty() || options.makes_pairs()) return 0;
  switch (options.schedule) {
    case Schedule::kGpipe:
    case Schedule::kBreadthFirst:
    case Schedule::kOngoing:
    case Schedule::kVaruna:
    case Schedule::kSearch:
    case Schedule::kTable:
      return 0;
    case Schedule::kInterleaved:  // groups of fewer micro-batches may be smaller where stages do
                                  // not divide
      return options.micro_batches % options.pp == 0 ? options.pp : 0;
    case Schedule::kHanayo:
    case Schedule::kChimera:
      return options.pp;
    case Schedule::kDualPipe:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

int64_t EnoughMicroBatches(const PlanOptions& options) {
  const int64_t all = options.micro_batches, period = PeriodOf(options);
  const int64_t least = (period == options.pp ? 6 : 4) * options.pp + 8;
  if (period == 0 || all <= least) return all;
  return all - (all - least) / period * period;
}

const ShortOrder& PlanOrder::Steps(int64_t stage) {
  std::optional<ShortOrder>& steps = steps_[stage];
  if (!steps.has_value()) {
    steps = Shortened(schedule_.OfStage(stage), 0, static_cast<int64_t>(steps_.size()));
  }
  return *steps;
}

const ShortOrder& PlanOrder::Placed(int64_t stage) {
  std::optional<ShortOrder>& placed = placed_[stage];
  if (!placed.has_value()) {
    StageSteps steps = schedule_.OfStage(stage);
    const size_t until = UntilPlaced(steps);
    placed = Shortened(std::move(steps), until, static_cast<int64_t>(steps_.size()));
  }
  return *placed;
}

PlanOrder& ShortOrders::Of(const ProgramPlan& plan) {
  const PlanOptions& options = *plan.request->options;
  std::string key = KeyOf(options);
  if (const auto known = known_.find(key); known != known_.end()) return *known->second;
  const int64_t micro_batches = EnoughMicroBatches(options);
  steps_ += kPhases * micro_batches * plan.placement.virtual_stages();
  if (steps_ > kMostSteps) {
    known_.clear();
    steps_ = 0;
  }
  auto order = std::make_unique<PlanOrder>(plan.Schedule(micro_batches), options.pp);
  return *(known_[std::move(key)] = std::move(order));
}

}  // namespace plancast
