#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_TYPES_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_TYPES_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "cluster/machine.h"
#include "compiler/session.h"
#include "graph/model/model_graph.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"
#include "python/plancast/bindings/session_costs.h"
#include "strategy/strategy_tree.h"

// What the classes of plancast._core hold, and the functions that add them.

namespace plancast {

struct PyMachine {
  Machine machine;
};

// A model and its graph as drawn with the default choices, for facts.
struct PyModel {
  std::shared_ptr<const ModelSource> source;
  std::shared_ptr<const ModelGraph> graph;

  static PyModel Create(std::shared_ptr<const ModelSource> source);
};

struct PyStrategy {
  StrategyTree tree;
};

struct PySession {
  std::shared_ptr<Session> session = std::make_shared<Session>();
  std::shared_ptr<const SessionCosts> costs = std::make_shared<const SessionCosts>();
  bool prior = true;  // forecasts are with what runs of a software take beyond the simulation
  std::shared_ptr<const Learned> learned;  // of runs of the user's own; may be null

  // `kernels`, which must outlive it, are of `costs`.
  Pricing PricedBy(const KernelCostModel& kernels) const {
    if (!prior) return Pricing(kernels);
    return Pricing(kernels, Uncertainty::Shipped(), learned.get());
  }
};

// Names, means, covariances row by row, the plan's own scale (planner/uncertainty/learned.h).
using PyLearned = std::optional<
    std::tuple<std::vector<std::string>, std::vector<double>, std::vector<double>, double>>;

// Types of storage and wire by option (strategy/precision.h).
using PyPrecision = std::map<std::string, std::string>;

// Whether CUDA graphs are captured: of whole passes, or of these parts of layers (`attn+mlp`).
using PyGraphs = std::variant<bool, std::string>;

// A job without its strategy; throws for unknown names.
Job MakeJob(const PyModel& model, std::optional<int64_t> batch, const std::string& dtype,
            const std::string& profile, const PyPrecision& precision = {},
            const PyGraphs& cuda_graphs = false);

// Puts what runs of the user's own tell of the memory that the job's software holds on each device
// beyond what is forecast with what it holds anyhow: the factor `memory/PROFILE` of what was
// learned, a share of a device's memory.
void AddHeld(const PySession& session, const Machine& machine, Job* job);

void BindAlgorithms(pybind11::module_& m);
void BindMachine(pybind11::module_& m);
void BindRules(pybind11::module_& m);
void BindModel(pybind11::module_& m);
void BindModelGraph(pybind11::module_& m);
void BindStrategy(pybind11::module_& m);
void BindForecast(pybind11::module_& m);
// Adds what a forecast says of memory to its class.
void BindMemory(pybind11::class_<Forecast, std::shared_ptr<Forecast>>& forecast);
void BindPredict(pybind11::module_& m);
void BindSearch(pybind11::module_& m);
void BindExecutionGraph(pybind11::module_& m);
void BindJobs(pybind11::module_& m);
void BindCluster(pybind11::module_& m);
void BindGradients(pybind11::module_& m);
void BindKernels(pybind11::module_& m);
void BindNccl(pybind11::module_& m);
void BindChunks(pybind11::module_& m);
void BindCollective(pybind11::module_& m);
void BindRecords(pybind11::module_& m);
void BindTraces(pybind11::module_& m);
void BindAstra(pybind11::module_& m);
void BindChakra(pybind11::module_& m);

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_TYPES_H_
