#ifndef PLANCAST_PLANNER_PREDICT_H_
#define PLANCAST_PLANNER_PREDICT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/compiler.h"
#include "compiler/graph_workspace.h"
#include "compiler/session.h"
#include "cost_models/kernel_cost.h"
#include "executor/executor.h"
#include "executor/sampling/sampling.h"
#include "executor/what_if/what_if.h"
#include "graph/dtype.h"
#include "graph/execution/execution_graph.h"
#include "graph/model/model_graph.h"
#include "strategy/software_profile.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// What a model needs to know of the plan before its graph can be drawn.
struct GraphChoices {
  Attention attention = Attention::kFlash;
  bool dropout = false;
  int64_t vocab_pad_multiple = 0;  // already times tp; 0 or 1: not padded
  bool experts_weigh_activations = false;
  int64_t experts_sorted_over = 0;  // ranks, where the software sorts tokens by expert
};

// A model of which graphs can be drawn: a transformer family member or a graph
// built by hand. Immutable and shared between threads.
class ModelSource {
 public:
  virtual ~ModelSource() = default;
  virtual absl::StatusOr<ModelGraph> Draw(const GraphChoices& choices) const = 0;
  virtual const std::string& name() const = 0;
  // Two sources with equal keys draw equal graphs (memo key).
  virtual std::string key() const = 0;
};

// One training job: everything but the machine.
struct Job {
  std::shared_ptr<const ModelSource> model;
  StrategyTree strategy;
  std::optional<int64_t> global_batch;  // samples; absent: dp * mb * accum
  DType dtype = DType::kBf16;
  SoftwareProfile profile;
};

// A prediction with everything that `predict --json` shows.
struct Forecast {
  std::string model, machine, strategy, profile;  // canonical texts
  double iteration_time_s = 0;
  double interval_s[2] = {0, 0};  // central 90 %
  double sigma_relative = 0;      // CoreScale (planner/uncertainty.h)
  int64_t global_batch = 0, seq = 0, devices = 0;
  double model_flops = 0;         // per iteration, model_72_full-like: full attention
  double hardware_flops = 0;      // executed on tensor cores, recompute included
  double peak_flops_per_gpu = 0;  // of the job's dtype
  std::string flops_formula;
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

struct PredictOptions {
  bool timeline = false;
  bool keep_memory_graph = false;
  bool memory_only_if_unfit = false;  // do not simulate time for a plan that does not fit
  // For rankings: of a plan that does not fit the forecast says nothing but that,
  // and the session does not keep the execution graph, which is made in here; one
  // workspace to a thread. `wanted` is asked about a plan that fits once its time
  // and cost are known; if it says no, the forecast says nothing else.
  GraphWorkspace* one_of_many = nullptr;
  std::function<bool(const Forecast&)> wanted = nullptr;
  bool shortcuts = true;                   // SimulateOptions::shortcuts: equal results without
  std::vector<WhatIfChange> what_if = {};  // simulated instead of the plan as it is
  Randomness randomness = {};              // with samples, gives Forecast::distribution
  // Links at nominal rates, and nothing of the host's times and of what collectives
  // lose in training; with DatasheetModel, a forecast without any calibration.
  bool datasheet = false;
  bool chunk_level = false;  // RuntimeParams::chunk_level
};

// The error structure and the interval of a forecast whose time and result are
// known (planner/uncertainty.h). Once a forecast.
void FillInterval(const SoftwareProfile& profile, Forecast* forecast);

// How a framework runs, as the executor reads it.
RuntimeParams RuntimeOf(const SoftwareProfile& profile);

// What it takes of memory beside tensors, on devices of `machine`.
MemoryOverhead OverheadOn(const SoftwareProfile& profile, const Machine& machine);

// describe -> compile -> realise -> fold -> simulate -> forecast.
absl::StatusOr<Forecast> Predict(const Job& job, const Machine& machine,
                                 const KernelCostModel& costs, Session& session,
                                 const PredictOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_PLANNER_PREDICT_H_
