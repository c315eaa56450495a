#include "planner/search/objective.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace plancast {
namespace {

absl::Status CheckDevice(const DeviceType& device, Objective objective) {
  if (objective == Objective::kCost && device.usd_per_hour <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the price of a ", device.name,
                     " is not known, so plans cannot be ranked by cost. Give `usd_per_hour` in a "
                     "machine file, or rank by time."));
  }
  if (objective == Objective::kEnergy && device.tdp_watts <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the power of a ", device.name,
                     " is not known, so plans cannot be ranked by energy. Give `tdp_watts` in a "
                     "machine file, or rank by time."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Objective> ParseObjective(absl::string_view name) {
  if (name == "time") return Objective::kTime;
  if (name == "cost") return Objective::kCost;
  if (name == "energy") return Objective::kEnergy;
  if (name == "goodput")
    return absl::InvalidArgumentError(
        "not supported yet: objective `goodput`. "
        "Rank by time, cost or energy.");
  return absl::InvalidArgumentError(absl::StrCat("no objective `", name,
                                                 "`; there are `time`, `cost` and `energy`.",
                                                 DidYouMean(name, {"time", "cost", "energy"})));
}

double ValueOf(const Forecast& forecast, Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return forecast.usd_per_iteration;
    case Objective::kEnergy:
      return forecast.kwh_per_iteration;
    case Objective::kTime:
      break;
  }
  return forecast.iteration_time_s;
}

absl::Status CheckObjective(const Machine& machine, Objective objective) {
  for (int s = 0; s < machine.num_sections(); ++s) {
    RETURN_IF_ERROR(CheckDevice(machine.section(s).device(), objective));
  }
  return absl::OkStatus();
}

}  // namespace plancast
