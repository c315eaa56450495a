#ifndef PLANCAST_PLANNER_FORECAST_PREDICT_H_
#define PLANCAST_PLANNER_FORECAST_PREDICT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "executor/sampling/sampling.h"
#include "executor/what_if/what_if.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"

namespace plancast {

struct PredictOptions {
  bool timeline = false;
  bool keep_memory_graph = false;
  bool memory_only_if_unfit = false;       // do not simulate time for a plan that does not fit
  bool shortcuts = true;                   // SimulateOptions::shortcuts: equal results without
  std::vector<WhatIfChange> what_if = {};  // simulated instead of the plan as it is
  Randomness randomness = {};              // with samples, gives Forecast::distribution
  bool chunk_level = false;                // RuntimeParams::chunk_level
};

// describe -> compile -> realise -> fold -> simulate -> forecast.
absl::StatusOr<Forecast> Predict(const Job& job, const Machine& machine, const Pricing& pricing,
                                 Session& session, const PredictOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_PREDICT_H_
