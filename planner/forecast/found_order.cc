#include "planner/forecast/found_order.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "compiler/schedule/find_schedule.h"
#include "compiler/schedule/varuna_order.h"
#include "executor/executor.h"
#include "planner/forecast/pass_times.h"
#include "strategy/schedule/plan_conflicts.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {
namespace {

constexpr int64_t kMeasured = 3;  // micro-batches: the first and the last may do more

// One plan with one placement of its layers.
class Finder {
 public:
  Finder(const PlanOptions& options, const StagePlacement& placement,
         const SoftwareProfile& profile, const Machine& machine, const Pricing& pricing,
         const CompilePlan& compile)
      : options_(options),
        placement_(placement),
        profile_(profile),
        machine_(machine),
        pricing_(pricing),
        compile_(compile) {}

  absl::StatusOr<FoundOrder> ByVarunasRule() {
    RETURN_IF_ERROR(MeasureWhole());
    return FoundOrder{0,
                      PrintScheduleTable(OrderByVarunasRule(options_.micro_batches, passes_.times,
                                                            options_.most_ongoing)),
                      absl::StrCat("order by Varuna's rule from ", Times(/*splits=*/false))};
  }

  // What it may keep is no bound if `any_memory`: a plan that does not fit is forecast, too.
  absl::StatusOr<FoundSchedule> Search(bool any_memory) {
    if (!measured_) {
      RETURN_IF_ERROR(MeasureWhole());
      RETURN_IF_ERROR(MeasureApart());
      measured_ = true;
    }
    SearchOptions search;
    search.may_split = may_split_ && !any_memory;
    if (!any_memory) search.memory = Memory();
    return FindSchedule(options_.micro_batches, passes_.times, search);
  }

  bool may_split() const { return may_split_; }

  // Of all virtual stages, the least and the most.
  std::string Times(bool splits) const {
    const auto range = [&](const auto& of) {
      int64_t least = of(passes_.times.passes.front()), most = least;
      for (const PassTime& pass : passes_.times.passes) {
        least = std::min(least, of(pass));
        most = std::max(most, of(pass));
      }
      const auto ms = [](int64_t ps) { return absl::StrFormat("%.3g", ToSeconds(ps) * 1e3); };
      return least == most ? absl::StrCat(ms(least), " ms")
                           : absl::StrCat(ms(least), " to ", ms(most), " ms");
    };
    std::string text =
        absl::StrCat("F=", range([](const PassTime& pass) { return pass.forward; }),
                     " B=", range([&](const PassTime& pass) {
                       return pass.recompute + (splits ? pass.backward : pass.WholeBackward());
                     }));
    if (splits) {
      absl::StrAppend(&text, " W=", range([](const PassTime& pass) { return pass.weights; }));
    }
    return text;
  }

 private:
  absl::StatusOr<MeasuredPasses> Measure(bool splits) {
    PlanOptions few = options_;
    few.micro_batches = std::min(options_.micro_batches, kMeasured * placement_.copies());
    few.schedule = Schedule::kTable;
    few.overlap.erase(Overlap::kEp);  // each pass by itself
    few.schedule_table = PrintScheduleTable(MeasuredTable(placement_, few.micro_batches, splits));
    RETURN_IF_ERROR(CheckConflicts(few, profile_));
    ASSIGN_OR_RETURN(const std::shared_ptr<const ExecutionGraph> graph, compile_(few));
    return MeasurePasses(*graph, placement_, few.micro_batches, machine_, pricing_,
                         pricing_.Runtime(profile_, machine_));
  }

  absl::Status MeasureWhole() {
    ASSIGN_OR_RETURN(passes_, Measure(/*splits=*/false));
    for (PassTime& pass : passes_.times.passes) {
      pass.whole = pass.backward;
      pass.weights = 0;
    }
    return absl::OkStatus();
  }

  // Gradients of weights, if the plan can have them apart.
  absl::Status MeasureApart() {
    const absl::StatusOr<MeasuredPasses> apart = Measure(/*splits=*/true);
    may_split_ = apart.ok();
    if (!apart.ok()) {
      return absl::IsUnimplemented(apart.status()) ? absl::OkStatus() : apart.status();
    }
    for (size_t v = 0; v < passes_.times.passes.size(); ++v) {
      PassTime& pass = passes_.times.passes[v];
      const PassTime& own = apart->times.passes[v];
      pass.backward = own.backward;
      pass.weights = own.weights;
      passes_.times.memory[v].for_weights = apart->times.memory[v].for_weights;
    }
    for (size_t s = 0; s < passes_.room.size(); ++s) {
      passes_.room[s] = std::min(passes_.room[s], apart->room[s]);
    }
    return absl::OkStatus();
  }

  // Bytes that each stage may keep.
  std::vector<int64_t> Memory() const {
    if (options_.search_memory == 0) return passes_.room;
    std::vector<int64_t> memory;
    for (int64_t s = 0; s < options_.pp; ++s) {
      int64_t each = 0;  // of a micro-batch in each copy
      for (int64_t chunk = 0; chunk < placement_.chunks(); ++chunk) {
        each += passes_.times.memory[placement_.At(s, chunk)].activations;
      }
      memory.push_back(
          static_cast<int64_t>(options_.search_memory * static_cast<double>(options_.pp * each) /
                               static_cast<double>(placement_.copies())));
    }
    return memory;
  }

  const PlanOptions& options_;
  const StagePlacement placement_;
  const SoftwareProfile& profile_;
  const Machine& machine_;
  const Pricing& pricing_;
  const CompilePlan& compile_;
  MeasuredPasses passes_;
  bool measured_ = false, may_split_ = false;
};

// Where the layers of a plan may be, its own placement first.
std::vector<StagePlacement> PlacementsOf(const PlanOptions& options, bool only_turning) {
  std::vector<StagePlacement> placements;
  if (!only_turning) placements.push_back(StagePlacement::Loop(options.pp, options.vpp));
  if (options.vpp % 2 == 0) placements.push_back(StagePlacement::Waves(options.pp, options.vpp));
  if (options.vpp == 1 && options.pp % 2 == 0 && options.micro_batches > 1) {
    placements.push_back(StagePlacement::BothWays(options.pp));
  }
  return placements;
}

// The best of all plans and placements.
class BestOrder {
 public:
  void Offer(size_t plan, FoundSchedule found, const std::string& times) {
    const SearchOptions by;
    if (!found.best_named.empty() &&
        (named_.empty() || by.CostOf(found.best_named_run) < by.CostOf(named_run_))) {
      named_ = found.best_named;
      named_run_ = found.best_named_run;
    }
    if (found_.has_value() && by.CostOf(found_->run) <= by.CostOf(found.run)) return;
    plan_ = plan;
    found_ = std::move(found);
    times_ = times;
  }

  bool any() const { return found_.has_value(); }

  FoundOrder Take() const {
    FoundOrder order{plan_, PrintScheduleTable(found_->table),
                     absl::StrCat("order found from ", times_, ": ", found_->from)};
    if (!named_.empty() && named_ != found_->from) {
      absl::StrAppend(&order.note, ", no worse than ", named_);
    }
    return order;
  }

 private:
  size_t plan_ = 0;
  std::optional<FoundSchedule> found_;
  std::string times_;
  std::string named_;
  ScheduleRun named_run_;
};

}  // namespace

absl::StatusOr<FoundOrder> FindOrder(const std::vector<PlanOptions>& plans,
                                     const SoftwareProfile& profile, const Machine& machine,
                                     const Pricing& pricing, const CompilePlan& compile) {
  const auto finder = [&](size_t plan, const StagePlacement& placement) {
    return Finder(plans[plan], placement, profile, machine, pricing, compile);
  };
  const StagePlacement loop = StagePlacement::Loop(plans[0].pp, plans[0].vpp);
  Finder own = finder(0, loop);
  if (plans[0].schedule == Schedule::kVaruna) return own.ByVarunasRule();
  BestOrder best;
  for (size_t plan = 0; plan < plans.size(); ++plan) {
    for (const StagePlacement& placement : PlacementsOf(plans[plan], plan > 0)) {
      Finder other = finder(plan, placement);
      Finder& finder_of_it = placement.Loops() ? own : other;
      absl::StatusOr<FoundSchedule> found = finder_of_it.Search(/*any_memory=*/false);
      const bool refused = !found.ok() && !absl::IsInvalidArgument(found.status());
      // What the plan as such cannot have is its error; other placements are left out.
      if (refused && placement.Loops()) return found.status();
      if (!found.ok()) continue;
      best.Offer(plan, *std::move(found), finder_of_it.Times(finder_of_it.may_split()));
    }
  }
  const bool fits = best.any();
  if (!fits) {
    ASSIGN_OR_RETURN(FoundSchedule found, own.Search(/*any_memory=*/true));
    best.Offer(0, std::move(found), own.Times(/*splits=*/false));
  }
  FoundOrder order = best.Take();
  if (!fits) absl::StrAppend(&order.note, "; no order keeps as little as there is memory for");
  if (!own.may_split()) {
    absl::StrAppend(&order.note, "; this plan keeps gradients of weights in B");
  }
  return order;
}

}  // namespace plancast
