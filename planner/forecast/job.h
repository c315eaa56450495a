#ifndef PLANCAST_PLANNER_FORECAST_JOB_H_
#define PLANCAST_PLANNER_FORECAST_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "graph/dtype.h"
#include "planner/forecast/model_source.h"
#include "strategy/software_profile.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// One training job: everything but the machine.
struct Job {
  std::shared_ptr<const ModelSource> model;
  StrategyTree strategy;
  std::optional<int64_t> global_batch;  // samples; absent: dp * mb * accum
  DType dtype = DType::kBf16;
  SoftwareProfile profile;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_JOB_H_
