#ifndef PLANCAST_PLANNER_FORECAST_PRICING_H_
#define PLANCAST_PLANNER_FORECAST_PRICING_H_

#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "executor/runtime.h"
#include "strategy/software_profile.h"

namespace plancast {

// What a forecast prices with: models of kernels, and the times that the host and
// collectives lose.
class Pricing {
 public:
  // Calibrated; `kernels` must outlive this.
  Pricing(const KernelCostModel& kernels) : kernels_(kernels) {}  // NOLINT: every model is one
  // By data sheets alone: kernels at peaks (DatasheetModel), links at nominal rates, and
  // nothing of the host's times and of what collectives lose in training.
  static Pricing Datasheet();

  const KernelCostModel& kernels() const { return kernels_; }
  // How a plan of the profile runs on the devices of `machine`.
  RuntimeParams Runtime(const SoftwareProfile& profile, const Machine& machine) const;

 private:
  Pricing(const KernelCostModel& kernels, bool nominal) : kernels_(kernels), nominal_(nominal) {}

  const KernelCostModel& kernels_;
  const bool nominal_ = false;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_PRICING_H_
