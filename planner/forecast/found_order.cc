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

class Finder {
 public:
  Finder(const PlanOptions& options, const SoftwareProfile& profile, const Machine& machine,
         const Pricing& pricing, const CompilePlan& compile)
      : options_(options),
        profile_(profile),
        machine_(machine),
        pricing_(pricing),
        compile_(compile) {}

  absl::StatusOr<FoundOrder> Find() {
    ASSIGN_OR_RETURN(passes_, Measure(/*splits=*/false));
    for (PassTime& pass : passes_.times.passes) {
      pass.whole = pass.backward;
      pass.weights = 0;
    }
    if (options_.schedule == Schedule::kVaruna) {
      return FoundOrder{
          PrintScheduleTable(OrderByVarunasRule(options_.micro_batches, passes_.times)),
          absl::StrCat("order by Varuna's rule from ", Times(/*splits=*/false))};
    }
    return Search();
  }

 private:
  absl::StatusOr<MeasuredPasses> Measure(bool splits) {
    PlanOptions few = options_;
    few.micro_batches = std::min(options_.micro_batches, kMeasured);
    few.schedule = Schedule::kTable;
    few.schedule_table =
        PrintScheduleTable(MeasuredTable(few.pp, few.vpp, few.micro_batches, splits));
    if (splits) {
      RETURN_IF_ERROR(CheckConflicts(few, profile_));
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<const ExecutionGraph> graph, compile_(few));
    return MeasurePasses(*graph, few.pp, few.vpp, few.micro_batches, machine_, pricing_,
                         pricing_.Runtime(profile_, machine_));
  }

  absl::StatusOr<FoundOrder> Search() {
    SearchOptions search;
    const absl::StatusOr<MeasuredPasses> apart = Measure(/*splits=*/true);
    search.may_split = apart.ok();
    if (apart.ok()) {
      TakeApart(*apart);
    } else if (!absl::IsUnimplemented(apart.status())) {
      return apart.status();
    }
    search.memory = Memory();
    absl::StatusOr<FoundSchedule> found =
        FindSchedule(options_.micro_batches, passes_.times, search);
    const bool fits = found.ok();
    if (!fits) {
      // A plan that does not fit is forecast, too.
      search.memory.clear();
      search.may_split = false;
      found = FindSchedule(options_.micro_batches, passes_.times, search);
      RETURN_IF_ERROR(found.status());
    }
    std::string note =
        absl::StrCat("order found from ", Times(search.may_split), ": ", found->from);
    if (!found->best_named.empty() && found->best_named != found->from) {
      absl::StrAppend(&note, ", no worse than ", found->best_named);
    }
    if (!fits) absl::StrAppend(&note, "; no order keeps as little as there is memory for");
    if (!apart.ok()) absl::StrAppend(&note, "; this plan keeps gradients of weights in B");
    return FoundOrder{PrintScheduleTable(found->table), std::move(note)};
  }

  void TakeApart(const MeasuredPasses& apart) {
    for (size_t v = 0; v < passes_.times.passes.size(); ++v) {
      PassTime& pass = passes_.times.passes[v];
      const PassTime& own = apart.times.passes[v];
      pass.backward = own.backward;
      pass.weights = own.weights;
      passes_.times.memory[v].for_weights = apart.times.memory[v].for_weights;
    }
    for (size_t s = 0; s < passes_.room.size(); ++s) {
      passes_.room[s] = std::min(passes_.room[s], apart.room[s]);
    }
  }

  // Bytes that each stage may keep.
  std::vector<int64_t> Memory() const {
    if (options_.search_memory == 0) return passes_.room;
    std::vector<int64_t> memory;
    for (int64_t s = 0; s < options_.pp; ++s) {
      int64_t each = 0;
      for (int64_t v = s; v < options_.pp * options_.vpp; v += options_.pp) {
        each += passes_.times.memory[v].activations;
      }
      memory.push_back(
          static_cast<int64_t>(options_.search_memory * static_cast<double>(options_.pp * each)));
    }
    return memory;
  }

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

  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const Machine& machine_;
  const Pricing& pricing_;
  const CompilePlan& compile_;
  MeasuredPasses passes_;
};

}  // namespace

absl::StatusOr<FoundOrder> FindOrder(const PlanOptions& options, const SoftwareProfile& profile,
                                     const Machine& machine, const Pricing& pricing,
                                     const CompilePlan& compile) {
  return Finder(options, profile, machine, pricing, compile).Find();
}

}  // namespace plancast
