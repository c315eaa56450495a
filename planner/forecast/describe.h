#ifndef PLANCAST_PLANNER_FORECAST_DESCRIBE_H_
#define PLANCAST_PLANNER_FORECAST_DESCRIBE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/plan_graph.h"
#include "strategy/software_profile.h"

namespace plancast {

// The parts of a forecast, each filled in once and in this order.

// What is known of a plan without simulating it.
absl::Status Describe(const Job& job, const Machine& machine, const PlanGraph& plan,
                      Session& session, Forecast* forecast);

// Whether the devices of the second have less left of their memory.
bool LessFull(const ClassMemory& a, const ClassMemory& b);
// What the fullest device takes, and what it has.
void FillPeak(const Machine& machine, const ClassMemory& fullest, Forecast* forecast);

// Time, money and energy of an iteration that is simulated to take `makespan_ps`, with what runs
// of its software take beyond that.
void FillTime(const Machine& machine, int64_t makespan_ps, const SoftwareLevel& level,
              Forecast* forecast);

// The structure of the error, and the interval, of a forecast whose time and result are
// known (planner/uncertainty/uncertainty.h). What the user's own runs tell, if they tell
// anything, changes time, money and energy, too.
void FillInterval(const SoftwareProfile& profile, const Learned* learned, Forecast* forecast);

// Where it goes beyond what was measured, and what its MFU means.
void FillWarnings(const Job& job, const Machine& machine, const PlanGraph& plan,
                  Forecast* forecast);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_DESCRIBE_H_
