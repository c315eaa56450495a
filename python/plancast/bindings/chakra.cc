// Chakra traces on our machines, and plans as Chakra traces.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "executor/dag/execute_dags.h"
#include "executor/realise.h"
#include "interop/astra/comm_groups_file.h"
#include "interop/chakra/dag_from_traces.h"
#include "interop/chakra/plan_traces.h"
#include "planner/forecast/plan_graph.h"
#include "python/plancast/bindings/chakra_traces.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

struct PyTraceRun {
  DagResult result;
  bool buffered_sends = false;

  // (finish, kernels, exposed communication, idle) by rank, seconds.
  std::vector<std::tuple<double, double, double, double>> Ranks() const {
    std::vector<std::tuple<double, double, double, double>> rows;
    for (const DagRankResult& rank : result.ranks) {
      rows.emplace_back(ToSeconds(rank.finish_ps), ToSeconds(rank.kernels_ps),
                        ToSeconds(rank.exposed_ps), ToSeconds(rank.idle_ps));
    }
    return rows;
  }

  // (kind, bytes, members, algorithm, protocol, count, seconds of all) of equal ones.
  using Row = std::tuple<std::string, int64_t, int64_t, std::string, std::string, int64_t, double>;
  std::vector<Row> Communications() const {
    std::map<std::tuple<std::string, int64_t, int64_t, std::string, std::string>,
             std::pair<int64_t, double>>
        sums;
    for (const DagComm& comm : result.comms) {
      auto& [count, seconds] = sums[{std::string(kCollectiveKindNames[comm.kind]), comm.bytes,
                                     comm.members, comm.algorithm, comm.protocol}];
      ++count;
      seconds += ToSeconds(comm.end_ps - comm.begin_ps);
    }
    std::vector<Row> rows;
    for (const auto& [key, sum] : sums) {
      rows.push_back(std::tuple_cat(key, std::make_tuple(sum.first, sum.second)));
    }
    return rows;
  }
};

absl::StatusOr<PyTraceRun> RunOn(const PyTraces& traces, const Machine& machine,
                                 const std::optional<std::pair<std::string, std::string>>& text) {
  CommGroups groups;
  if (text.has_value()) {
    ASSIGN_OR_RETURN(groups, ReadCommGroups(text->first, text->second));
  }
  RETURN_IF_ERROR(CheckNotMixed(machine, "A run of traces"));
  RETURN_IF_ERROR(VerifyTraces(traces.Pointers(), groups));
  ASSIGN_OR_RETURN(DagJob job, DagJobFrom(traces.Pointers(), groups, machine.device()));
  absl::StatusOr<DagResult> result = ExecuteDags(job, machine);
  // Ranks that all send before they receive: made where sends do not wait, as in ASTRA-sim.
  if (IsDeadlock(result.status())) {
    job.buffered_sends = true;
    ASSIGN_OR_RETURN(DagResult again, ExecuteDags(job, machine));
    return PyTraceRun{std::move(again), true};
  }
  RETURN_IF_ERROR(result.status());
  return PyTraceRun{*std::move(result), false};
}

struct PyPlanTraces {
  std::shared_ptr<const ExecutionGraph> graph;
  std::shared_ptr<PlanTraces> traces;
};

PyPlanTraces TracesOfPlan(const PyModel& model, const PyMachine& machine,
                          const PyStrategy& strategy, const PySession& session,
                          std::optional<int64_t> batch, const std::string& dtype,
                          const std::string& profile) {
  Job job = MakeJob(model, batch, dtype, profile);
  job.strategy = strategy.tree;
  auto made = [&]() -> absl::StatusOr<PyPlanTraces> {
    py::gil_scoped_release release;
    RETURN_IF_ERROR(CheckNotMixed(machine.machine, "A trace for every rank of a plan"));
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    const Pricing pricing(*costs);
    ASSIGN_OR_RETURN(const PlanGraph plan,
                     DrawAndCompile(job, machine.machine, *session.session, &pricing));
    ASSIGN_OR_RETURN(const KernelPrices prices,
                     PriceKernels(*plan.execution, machine.machine, *costs));
    std::vector<double> seconds;
    for (const KernelCost& cost : prices.costs) seconds.push_back(cost.seconds_alone);
    ASSIGN_OR_RETURN(PlanTraces traces, PlanTraces::Create(*plan.execution, std::move(seconds)));
    return PyPlanTraces{plan.execution, std::make_shared<PlanTraces>(std::move(traces))};
  }();
  return ValueOrThrow(std::move(made));
}

py::bytes Microbenchmark(const std::string& kind, int64_t ranks, int64_t bytes) {
  const std::map<std::string, chakra::CollectiveCommType> kinds = {
      {"all_reduce", chakra::ALL_REDUCE},
      {"all_gather", chakra::ALL_GATHER},
      {"reduce_scatter", chakra::REDUCE_SCATTER},
      {"all_to_all", chakra::ALL_TO_ALL}};
  return py::bytes(WriteEtFile(ValueOrThrow(MicrobenchmarkTrace(kinds.at(kind), ranks, bytes))));
}

}  // namespace

void BindChakra(py::module_& m) {
  py::class_<PyTraceRun>(m, "TraceRun")
      .def_property_readonly(
          "time_s", [](const PyTraceRun& self) { return ToSeconds(self.result.makespan_ps); })
      .def_readonly("buffered_sends", &PyTraceRun::buffered_sends)
      .def_property_readonly("ranks", &PyTraceRun::Ranks)
      .def_property_readonly("communications", &PyTraceRun::Communications);
  m.def(
      "run_traces",
      [](const PyTraces& traces, const PyMachine& machine,
         const std::optional<std::pair<std::string, std::string>>& groups) {
        auto run = [&] {
          py::gil_scoped_release release;
          return RunOn(traces, machine.machine, groups);
        }();
        return ValueOrThrow(std::move(run));
      },
      py::arg("traces"), py::arg("machine"), py::arg("groups"));
  py::class_<PyPlanTraces>(m, "PlanTraces")
      .def_property_readonly("ranks", [](const PyPlanTraces& self) { return self.traces->ranks(); })
      .def("trace",
           [](const PyPlanTraces& self, int64_t rank) {
             const std::string bytes = [&] {
               py::gil_scoped_release release;
               return WriteEtFile(self.traces->TraceOf(rank));
             }();
             return py::bytes(bytes);
           })
      // Of the traces asked for so far.
      .def("groups",
           [](const PyPlanTraces& self) { return WriteCommGroups(self.traces->groups()); });
  m.def("plan_traces", &TracesOfPlan, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"));
  m.def("microbenchmark_trace", &Microbenchmark, py::arg("kind"), py::arg("ranks"),
        py::arg("bytes"));
}

}  // namespace plancast
