#ifndef PLANCAST_PLANNER_FORECAST_RANKED_PREDICTION_H_
#define PLANCAST_PLANNER_FORECAST_RANKED_PREDICTION_H_

#include <functional>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/graph_workspace.h"
#include "compiler/session.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"

namespace plancast {

// Asked about a plan that fits, once its time and cost are known.
using WantsForecast = std::function<bool(const Forecast&)>;

// Predict for one plan of many: it is compiled no further than it fits, into `workspace`
// (one to a thread) and not kept by the session. Of a plan that does not fit the forecast
// says nothing but that; of one that `wants` does not want, only memory, time and cost.
absl::StatusOr<Forecast> PredictOneOfMany(const Job& job, const Machine& machine,
                                          const Pricing& pricing, Session& session,
                                          const WantsForecast& wants, GraphWorkspace* workspace);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_RANKED_PREDICTION_H_
