#ifndef PLANCAST_PLANNER_FORECAST_FORECAST_H_
#define PLANCAST_PLANNER_FORECAST_FORECAST_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/sampling/sampling.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"
#include "planner/uncertainty/uncertainty.h"

namespace plancast {

// A prediction with everything that `predict --json` shows.
struct Forecast {
  std::string model, machine, strategy, profile;  // canonical texts
  // Median of what runs take: what is simulated (`result`) times beyond_simulated().
  double iteration_time_s = 0;
  SoftwareLevel software_level;
  double learned_log = 0;  // of its logarithm, what the user's own runs tell
  double beyond_simulated() const { return std::exp(software_level.log); }
  double interval_s[2] = {0, 0};  // central 90 %
  double sigma_relative = 0;      // CoreScale (planner/uncertainty/uncertainty.h)
  int64_t global_batch = 0, seq = 0, devices = 0;
  double model_flops = 0;         // per iteration, model_72_full-like: full attention
  double hardware_flops = 0;      // executed on tensor cores, recompute included
  double peak_flops_per_gpu = 0;  // of the job's dtype
  std::string flops_formula;
  int64_t trained_parameters = 0;
  int64_t peak_memory_bytes = 0;  // `device` of the worst class
  double memory_capacity_bytes = 0;
  bool fits = false;
  SimResult result;
  std::optional<Distribution> distribution;  // if asked for
  std::map<std::string, std::string> chosen;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;                    // where it goes beyond what was measured
  double simulate_s = 0;                                // wall time of this prediction
  double usd_per_iteration = 0, kwh_per_iteration = 0;  // 0: unknown
  // What was simulated; kept with a timeline, whose slices point into it.
  std::shared_ptr<const ExecutionGraph> timeline_graph;
  // The same, kept if asked for: what is alive at the peak of memory, and when.
  std::shared_ptr<const ExecutionGraph> memory_graph;
  MemoryOverhead memory_overhead;  // with it, and the device's capacity
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_FORECAST_H_
