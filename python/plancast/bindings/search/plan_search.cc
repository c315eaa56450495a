// One ranking in pieces, for several processes: what each of them does to some plans.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "planner/fit/nearest_plan.h"
#include "planner/search/best_first.h"
#include "planner/search/evaluator.h"
#include "planner/search/rank.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"
#include "strategy/short_form.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// A value of the objective, or why there is none.
using PyValue = std::variant<double, std::string>;
// What a value is at least, why there is none, or both.
using PyBound = std::pair<std::optional<double>, std::optional<std::string>>;
using PyPlan = std::variant<std::shared_ptr<Forecast>, std::string>;
using Plans = std::vector<std::string>;  // short forms

std::vector<ShortForm> Parsed(const Plans& plans) {
  std::vector<ShortForm> forms;
  forms.reserve(plans.size());
  for (const std::string& plan : plans) forms.push_back(ValueOrThrow(ParseShortForm(plan)));
  return forms;
}

// A job and what its plans are evaluated with, which keeps what they share from call to call.
// Calls of several threads wait for one another.
class PlanSearch {
 public:
  PlanSearch(const PyModel& model, const PyMachine& machine, PySession session,
             std::shared_ptr<const KernelCostModel> costs, Job job, Objective objective)
      : graph_(model.graph),
        machine_(machine.machine),
        session_(std::move(session)),
        costs_(std::move(costs)),
        pricing_(session_.PricedBy(*costs_)),
        job_(std::move(job)),
        level_(pricing_.Level(job_.profile, *graph_)),
        evaluator_(job_, machine_, pricing_, *session_.session, objective) {}
  PlanSearch(const PlanSearch&) = delete;

  // The plans of a space in their order, why others are left out, and its canonical text.
  std::tuple<Plans, std::map<std::string, int64_t>, std::string> Enumerate(
      const std::string& text, const std::string& where) {
    SearchSpace space = ValueOrThrow(ParseSearchSpace(text));
    if (!where.empty()) space.where = ValueOrThrow(PlanCondition::Parse(where));
    JobSpace found = Unlocked([&] { return SpaceOf(job_, *graph_, machine_, space); });
    Plans plans;
    plans.reserve(found.enumeration.plans.size());
    for (const ShortForm& plan : found.enumeration.plans) plans.push_back(PrintShortForm(plan));
    return {std::move(plans), std::move(found.enumeration.excluded), std::move(found.text)};
  }

  std::vector<PyBound> Bound(const Plans& plans) {
    return Each<PyBound>(plans, [&](const ShortForm& plan) {
      Outcome outcome = evaluator_.Bound(plan, level_, true);
      PyBound bound;
      if (outcome.excluded.empty() || outcome.value > 0) bound.first = outcome.value;
      if (!outcome.excluded.empty()) bound.second = std::move(outcome.excluded);
      return bound;
    });
  }

  std::vector<PyValue> Simulate(const Plans& plans) {
    return Each<PyValue>(
        plans, [&](const ShortForm& plan) { return ValueOf(evaluator_.Evaluate(plan, false)); });
  }

  std::vector<PyPlan> Describe(const Plans& plans) {
    return Each<PyPlan>(plans, [&](const ShortForm& plan) -> PyPlan {
      Outcome outcome = evaluator_.Evaluate(plan, true);
      if (outcome.forecast == nullptr) return std::move(outcome.excluded);
      return std::shared_ptr<Forecast>(std::move(outcome.forecast));
    });
  }

  // Of plans that do not fit; None if no plan is simulated at all.
  std::optional<std::tuple<std::string, int64_t, int64_t, std::string>> Nearest(
      const Plans& plans) {
    const std::vector<ShortForm> forms = Parsed(plans);
    const std::optional<NearestPlan> near = Unlocked([&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      return FindNearestPlan(job_, machine_, pricing_, *session_.session, forms);
    });
    if (!near.has_value()) return std::nullopt;
    return std::make_tuple(near->strategy, near->device_bytes, near->capacity_bytes, near->advice);
  }

 private:
  static PyValue ValueOf(Outcome outcome) {
    if (!outcome.excluded.empty()) return std::move(outcome.excluded);
    return outcome.value;
  }

  template <typename Answer, typename Ask>
  std::vector<Answer> Each(const Plans& plans, const Ask& ask) {
    const std::vector<ShortForm> forms = Parsed(plans);
    std::vector<Answer> answers;
    py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const ShortForm& plan : forms) answers.push_back(ask(plan));
    return answers;
  }

  const std::shared_ptr<const ModelGraph> graph_;
  const Machine machine_;
  const PySession session_;
  const std::shared_ptr<const KernelCostModel> costs_;
  const Pricing pricing_;
  const Job job_;
  const SoftwareLevel level_;
  std::mutex mutex_;
  Evaluator evaluator_;  // under mutex_
};

std::unique_ptr<PlanSearch> MakeSearch(const PyModel& model, const PyMachine& machine,
                                       const PySession& session, std::optional<int64_t> batch,
                                       const std::string& objective, const std::string& dtype,
                                       const std::string& profile, const PyPrecision& precision,
                                       const PyGraphs& cuda_graphs, const PyStrategy& nodes) {
  Job job = MakeJob(model, batch, dtype, profile, precision, cuda_graphs);
  job.strategy = nodes.tree;
  AddHeld(session, machine.machine, &job);
  const Objective wanted = ValueOrThrow(ParseObjective(objective));
  ThrowIfError(CheckObjective(machine.machine, wanted));
  auto costs = Unlocked([&] { return session.costs->For(machine.machine); });
  return std::make_unique<PlanSearch>(model, machine, session, std::move(costs), std::move(job),
                                      wanted);
}

}  // namespace

void BindSearch(py::module_& m) {
  m.def(
      "alike_together", [](const Plans& plans) { return AlikeTogether(Parsed(plans)); },
      py::arg("plans"));
  m.def(
      "bodies_together", [](const Plans& plans) { return BodiesTogether(Parsed(plans)); },
      py::arg("plans"));
  m.def(
      "without_recompute", [](const Plans& plans) { return WithoutRecompute(Parsed(plans)); },
      py::arg("plans"));
  py::class_<BestFirst>(m, "BestFirst")
      .def(py::init([](const std::vector<std::tuple<int64_t, double, bool>>& bounds, int64_t top) {
             std::vector<BestFirst::Bound> known;
             known.reserve(bounds.size());
             for (const auto& [plan, least, own] : bounds) known.push_back({plan, least, own});
             return std::make_unique<BestFirst>(known, top);
           }),
           py::arg("bounds"), py::arg("top"))
      .def("to_ask", &BestFirst::ToAsk)
      .def("asked", &BestFirst::Asked, py::arg("plan"), py::arg("least"))
      .def("next_round", &BestFirst::NextRound)
      .def("ahead", &BestFirst::Ahead, py::arg("most"))
      .def("found", &BestFirst::Found, py::arg("value"))
      .def_property_readonly("bound", &BestFirst::bound)
      .def_property_readonly("left", &BestFirst::left);
  py::class_<PlanSearch>(m, "PlanSearch")
      .def(py::init(&MakeSearch), py::arg("model"), py::arg("machine"), py::arg("session"),
           py::kw_only(), py::arg("batch"), py::arg("objective"), py::arg("dtype"),
           py::arg("profile"), py::arg("precision"), py::arg("cuda_graphs"), py::arg("nodes"))
      .def("enumerate", &PlanSearch::Enumerate, py::arg("space"), py::arg("where"))
      .def("bound", &PlanSearch::Bound, py::arg("plans"))
      .def("simulate", &PlanSearch::Simulate, py::arg("plans"))
      .def("describe", &PlanSearch::Describe, py::arg("plans"))
      .def("nearest", &PlanSearch::Nearest, py::arg("plans"))
      // The reason of those for which `nearest` is meant.
      .def_static("unfit", [] { return std::string(kUnfit); });
}

}  // namespace plancast
