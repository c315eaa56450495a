// Several jobs on one machine, and what helps most.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "planner/predict_jobs.h"
#include "planner/sensitivity.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// (name, model, strategy, batch, dtype, profile, placement, arrival in seconds).
using PyJob = std::tuple<std::string, PyModel, PyStrategy, std::optional<int64_t>, std::string,
                         std::string, std::string, double>;

std::vector<JobForecast> PredictAll(const std::vector<PyJob>& jobs, const PyMachine& machine,
                                    const PySession& session) {
  std::vector<JobRequest> requests;
  for (const auto& [name, model, strategy, batch, dtype, profile, placement, arrival] : jobs) {
    Job job = MakeJob(model, batch, dtype, profile);
    job.strategy = strategy.tree;
    requests.push_back({name, std::move(job), placement, arrival});
  }
  auto forecasts = [&]() -> absl::StatusOr<std::vector<JobForecast>> {
    py::gil_scoped_release release;
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return PredictJobs(requests, machine.machine, session.PricedBy(*costs), *session.session);
  }();
  return ValueOrThrow(std::move(forecasts));
}

// The time as it is, and (change, time) by time; seconds.
std::pair<double, std::vector<std::pair<std::string, double>>> RankChanges(
    const PyModel& model, const PyMachine& machine, const PyStrategy& strategy,
    const PySession& session, std::optional<int64_t> batch, const std::string& dtype,
    const std::string& profile, const PyPrecision& precision, const PyGraphs& cuda_graphs,
    const std::string& candidates) {
  Job job = MakeJob(model, batch, dtype, profile, precision, cuda_graphs);
  job.strategy = strategy.tree;
  std::vector<WhatIfChange> changes;
  if (!candidates.empty()) changes = ValueOrThrow(ParseWhatIf(candidates));
  auto table = [&]() -> absl::StatusOr<SensitivityTable> {
    py::gil_scoped_release release;
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return Sensitivities(job, machine.machine, session.PricedBy(*costs), *session.session,
                         std::move(changes));
  }();
  const SensitivityTable ranked = ValueOrThrow(std::move(table));
  std::vector<std::pair<std::string, double>> rows;
  for (const Sensitivity& row : ranked.rows) rows.emplace_back(row.change, row.iteration_time_s);
  return {ranked.iteration_time_s, std::move(rows)};
}

}  // namespace

void BindJobs(py::module_& m) {
  py::class_<JobForecast>(m, "JobForecast")
      .def_readonly("name", &JobForecast::name)
      .def_readonly("arrival_s", &JobForecast::arrival_s)
      .def_readonly("alone_s", &JobForecast::alone_s)
      .def_readonly("shares_links_with", &JobForecast::with)
      .def_property_readonly("forecast", [](const JobForecast& self) {
        return std::make_shared<Forecast>(self.forecast);
      });
  m.def("predict_jobs", &PredictAll, py::arg("jobs"), py::arg("machine"), py::arg("session"));
  m.def(
      "job_machine",
      [](const PyMachine& machine, const std::string& placement) {
        return PyMachine{ValueOrThrow(JobMachine(machine.machine, placement))};
      },
      py::arg("machine"), py::arg("placement"));
  m.def("sensitivities", &RankChanges, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"), py::arg("cuda_graphs"), py::arg("candidates"));
}

}  // namespace plancast
