#ifndef PLANCAST_PLANNER_UNCERTAINTY_WARNINGS_H_
#define PLANCAST_PLANNER_UNCERTAINTY_WARNINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/machine.h"
#include "executor/executor.h"
#include "planner/uncertainty/uncertainty.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// Where a forecast goes beyond what was measured, one sentence each: kernels priced
// with other GPUs' coefficients, much traffic in PCIe hosts, software known from documentation or
// compared with no run, plans larger or other than the measured ones. `seq` is tokens, 0 without.
std::vector<std::string> ExtrapolationWarnings(const Uncertainty& uncertainty,
                                               const SoftwareProfile& profile,
                                               const PlanOptions& plan, int64_t seq,
                                               const Machine& machine, const SimResult& result);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_UNCERTAINTY_WARNINGS_H_
