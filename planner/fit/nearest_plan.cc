#include "planner/fit/nearest_plan.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "planner/fit/fit_advice.h"
#include "planner/fit/fits.h"

namespace plancast {
namespace {

constexpr size_t kFew = 1000;

int Recomputes(const ShortForm& plan) {
  const std::string mode = plan.recompute.value_or("none");
  return mode == "none" ? 0 : mode == "selective" ? 1 : mode == "full" ? 3 : 2;
}

// One plan for each way to cut the model, what saves most memory first.
std::vector<ShortForm> Frugal(const std::vector<ShortForm>& plans) {
  using Frugality = std::tuple<int64_t, int64_t, int>;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, std::string>,
           std::pair<Frugality, const ShortForm*>>
      best;
  for (const ShortForm& plan : plans) {
    const Frugality frugality(plan.zero.value_or(0), -plan.mb.value_or(1), Recomputes(plan));
    const auto [known, fresh] = best.try_emplace(
        std::make_tuple(plan.tp.value_or(1), plan.pp.value_or(1), plan.vpp.value_or(1),
                        plan.ep.value_or(1), plan.etp.value_or(0), plan.cp.value_or(1),
                        plan.cp_type.value_or("")),
        frugality, &plan);
    if (!fresh && known->second.first < frugality) known->second = {frugality, &plan};
  }
  std::vector<ShortForm> frugal;
  for (const auto& [sizes, plan] : best) frugal.push_back(*plan.second);
  return frugal;
}

}  // namespace

absl::StatusOr<std::optional<NearestPlan>> FindNearestPlan(const Job& job, const Machine& machine,
                                                           const Pricing& pricing, Session& session,
                                                           const std::vector<ShortForm>& plans) {
  std::optional<NearestPlan> nearest;
  const ShortForm* form = nullptr;
  const std::vector<ShortForm> looked_at = plans.size() > kFew ? Frugal(plans) : plans;
  FitCheck check(job, machine, session, &pricing);
  for (const ShortForm& plan : looked_at) {
    const absl::StatusOr<FitVerdict> verdict = check.Verdict(plan);
    if (!verdict.ok() || verdict->fits) continue;
    if (nearest.has_value() && nearest->device_bytes <= verdict->device_bytes) continue;
    nearest = {PrintShortForm(plan), verdict->device_bytes, verdict->capacity_bytes, ""};
    form = &plan;
  }
  if (!nearest.has_value()) return nearest;
  Job with_plan = job;
  with_plan.strategy = job.strategy.WithPlan(*form);
  ASSIGN_OR_RETURN(nearest->advice, FitAdvice(with_plan, machine, pricing, session));
  return nearest;
}

}  // namespace plancast
