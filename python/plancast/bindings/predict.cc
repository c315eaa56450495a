#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "compiler/compiler.h"
#include "cost_models/records/record_store.h"
#include "planner/fit/fit_advice.h"
#include "planner/fit/fits.h"
#include "planner/fit/tree_verdict.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/predict.h"
#include "planner/forecast/pricing.h"
#include "planner/search/product_grid.h"
#include "planner/search/rank.h"
#include "planner/uncertainty/uncertainty.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "strategy/precision.h"
#include "strategy/profile/additions.h"
#include "strategy/schedule/interleaved_group.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

using Batch = std::optional<int64_t>;
// jitter, stragglers' probability and speed, samples, seed, threads.
using PyRandomness = std::optional<std::tuple<double, double, double, int64_t, uint64_t, int>>;

std::shared_ptr<Forecast> PredictOne(const PyModel& model, const PyMachine& machine,
                                     const PyStrategy& strategy, const PySession& session,
                                     Batch batch, const std::string& dtype,
                                     const std::string& profile, const PyPrecision& precision,
                                     const PyGraphs& cuda_graphs, bool timeline,
                                     bool memory_only_if_unfit, bool shortcuts,
                                     const std::string& what_if, const PyRandomness& random,
                                     bool datasheet, bool chunk_level) {
  Job job = MakeJob(model, batch, dtype, profile, precision, cuda_graphs);
  job.strategy = strategy.tree;
  AddHeld(session, machine.machine, &job);
  PredictOptions options;
  options.timeline = timeline;
  options.keep_memory_graph = true;
  options.memory_only_if_unfit = memory_only_if_unfit;
  options.shortcuts = shortcuts;
  options.chunk_level = chunk_level;
  if (!what_if.empty()) options.what_if = ValueOrThrow(ParseWhatIf(what_if));
  if (random.has_value()) {
    Randomness& drawn = options.randomness;
    std::tie(drawn.jitter, drawn.straggler_probability, drawn.straggler_speed, drawn.samples,
             drawn.seed, drawn.threads) = *random;
  }
  absl::StatusOr<Forecast> forecast = [&]() -> absl::StatusOr<Forecast> {
    py::gil_scoped_release release;
    if (datasheet) {
      return Predict(job, machine.machine, Pricing::Datasheet(), *session.session, options);
    }
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return Predict(job, machine.machine, session.PricedBy(*costs), *session.session, options);
  }();
  return std::make_shared<Forecast>(ValueOrThrow(std::move(forecast)));
}

std::string AdviseFit(const PyModel& model, const PyMachine& machine, const PyStrategy& strategy,
                      const PySession& session, Batch batch, const std::string& dtype,
                      const std::string& profile, const PyPrecision& precision, bool datasheet) {
  Job job = MakeJob(model, batch, dtype, profile, precision);
  job.strategy = strategy.tree;
  AddHeld(session, machine.machine, &job);
  absl::StatusOr<std::string> advice = [&]() -> absl::StatusOr<std::string> {
    py::gil_scoped_release release;
    if (datasheet) {
      return FitAdvice(job, machine.machine, Pricing::Datasheet(), *session.session);
    }
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return FitAdvice(job, machine.machine, session.PricedBy(*costs), *session.session);
  }();
  return ValueOrThrow(std::move(advice));
}

// Calls back with the GIL; false where Python raised, now or before, or Ctrl-C was pressed.
bool Report(const py::object& progress, int64_t done, int64_t total) {
  py::gil_scoped_acquire acquire;
  if (PyErr_Occurred() != nullptr) return false;
  try {
    if (!progress.is_none()) progress(done, total);
  } catch (py::error_already_set& error) {
    error.restore();
    return false;
  }
  return PyErr_CheckSignals() == 0;
}

// Calls back with the GIL; what Python raises is for the next report to find.
void Announce(const py::object& announce, int64_t plans, double seconds) {
  py::gil_scoped_acquire acquire;
  try {
    announce(plans, seconds);
  } catch (py::error_already_set& error) {
    error.restore();
  }
}

// Throws what a report left behind, except Ctrl-C where what was found until then is asked for:
// that is forgotten.
void ThrowIfRaised(bool partial) {
  if (PyErr_Occurred() == nullptr) return;
  if (!partial || PyErr_Occurred() != PyExc_KeyboardInterrupt) throw py::error_already_set();
  PyErr_Clear();
}

std::shared_ptr<RankResult> RankAll(
    const PyModel& model, const PyMachine& machine, const PySession& session, int64_t batch,
    const std::string& space, const std::string& where, const std::string& objective, int64_t top,
    const std::string& dtype, const std::string& profile, const PyPrecision& precision,
    const PyGraphs& cuda_graphs, const PyStrategy& nodes, int workers, bool exhaustive,
    const std::vector<double>& known, int64_t partial, const py::object& progress,
    const py::object& found, const py::object& announce) {
  Job job = MakeJob(model, batch, dtype, profile, precision, cuda_graphs);
  job.strategy = nodes.tree;
  AddHeld(session, machine.machine, &job);
  RankOptions options;
  options.space = ValueOrThrow(ParseSearchSpace(space));
  if (!where.empty()) options.space.where = ValueOrThrow(PlanCondition::Parse(where));
  options.objective = ValueOrThrow(ParseObjective(objective));
  options.threads = workers;
  options.top = top;
  options.exhaustive = exhaustive;
  options.known = known;
  options.partial = partial != 0;
  options.top_if_stopped = std::max<int64_t>(partial, 0);  // -1: all
  options.progress = [&](const RankProgress& so_far) {
    if (so_far.best != nullptr && !found.is_none()) {
      py::gil_scoped_acquire acquire;
      if (PyErr_Occurred() != nullptr) return false;
      try {
        found(PrintShortForm(*so_far.best), so_far.value, so_far.bound);
      } catch (py::error_already_set& error) {
        error.restore();
        return false;
      }
    }
    return Report(progress, so_far.done, so_far.total);
  };
  if (!announce.is_none()) {
    options.announce = [&announce](int64_t plans, double seconds) {
      Announce(announce, plans, seconds);
    };
  }
  absl::StatusOr<RankResult> result = [&]() -> absl::StatusOr<RankResult> {
    py::gil_scoped_release release;
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return Rank(job, machine.machine, session.PricedBy(*costs), *session.session, options);
  }();
  ThrowIfRaised(options.partial);
  return std::make_shared<RankResult>(ValueOrThrow(std::move(result)));
}

// (fits, bytes, capacity, stage) of each plan, a short form or a tree, or the error of one that is
// refused.
py::list FitsAll(const PyModel& model, const PyMachine& machine, const PySession& session,
                 Batch batch, const std::vector<std::variant<std::string, PyStrategy>>& plans,
                 const std::string& dtype, const std::string& profile,
                 const PyPrecision& precision) {
  std::vector<absl::StatusOr<FitVerdict>> verdicts;
  const auto costs = ValueOrThrow(session.costs->For(machine.machine));
  const Pricing pricing = session.PricedBy(*costs);
  Job job = MakeJob(model, batch, dtype, profile, precision);
  AddHeld(session, machine.machine, &job);
  {
    py::gil_scoped_release release;
    FitCheck check(job, machine.machine, *session.session, &pricing);
    for (const auto& plan : plans) {
      if (const auto* const strategy = std::get_if<PyStrategy>(&plan)) {
        job.strategy = strategy->tree;
        verdicts.push_back(VerdictOnTree(job, machine.machine, pricing, *session.session));
        continue;
      }
      const absl::StatusOr<ShortForm> form = ParseShortForm(std::get<std::string>(plan));
      verdicts.push_back(form.ok() ? check.Verdict(*form) : form.status());
    }
  }
  py::list out;
  for (const absl::StatusOr<FitVerdict>& v : verdicts) {
    if (v.ok()) {
      out.append(py::make_tuple(v->fits, v->device_bytes, v->capacity_bytes, v->stage));
    } else {
      out.append(std::string(v.status().message()));
    }
  }
  return out;
}

// (pass, text) in the order of the passes.
std::vector<std::pair<std::string, std::string>> CompilePasses(
    const PyModel& model, const PyMachine& machine, const PyStrategy& strategy, Batch batch,
    const std::string& dtype, const std::string& profile, const PyPrecision& precision) {
  Job job = MakeJob(model, batch, dtype, profile, precision);
  job.strategy = strategy.tree;
  std::vector<std::pair<std::string, std::string>> passes;
  absl::Status status = [&]() -> absl::Status {
    py::gil_scoped_release release;
    Session session;
    ASSIGN_OR_RETURN(const auto costs, SessionCosts().For(machine.machine));
    const Pricing pricing(*costs);
    return DrawAndCompile(job, machine.machine, session, &pricing,
                          [&](absl::string_view pass, const std::string& dump) {
                            passes.emplace_back(std::string(pass), dump);
                          })
        .status();
  }();
  ThrowIfError(status);
  return passes;
}

// `costs` may be null: the shipped models.
PySession SessionWith(std::shared_ptr<const SessionCosts> costs, bool prior,
                      const PyLearned& learned) {
  PySession session;
  if (costs != nullptr) session.costs = std::move(costs);
  session.prior = prior;
  if (learned.has_value()) {
    const auto& [names, mean, covariance, plan] = *learned;
    session.learned = std::make_shared<const Learned>(
        ValueOrThrow(Learned::Create(names, mean, covariance, plan)));
  }
  return session;
}

}  // namespace

void AddHeld(const PySession& session, const Machine& machine, Job* job) {
  if (session.learned == nullptr) return;
  SimResult all;  // what hangs on this factor alone
  all.makespan_ps = CeilToPicoseconds(1);
  all.factors[absl::StrCat("memory/", job->profile.base())] = {1.0, 0};
  const double share = session.learned->Log(all);
  int64_t& bytes = job->profile.memory.context_bytes;
  bytes = std::max<int64_t>(bytes + std::llround(share * machine.device().capacity_bytes()), 0);
}

Job MakeJob(const PyModel& model, Batch batch, const std::string& dtype, const std::string& profile,
            const PyPrecision& precision, const PyGraphs& cuda_graphs) {
  Job job;
  job.model = model.source;
  job.global_batch = batch;
  job.dtype = ValueOrThrow(ParseDType(dtype));
  job.profile = ValueOrThrow(FindSoftwareProfile(profile));
  job.profile.precision = ValueOrThrow(ParsePrecision(precision));
  if (const std::string* const scopes = std::get_if<std::string>(&cuda_graphs)) {
    if (absl::Status status = job.profile.Capture(*scopes); !status.ok()) ThrowStatus(status);
  } else if (std::get<bool>(cuda_graphs)) {
    job.profile.host.cuda_graphs = true;
  }
  return job;
}

void BindPredict(py::module_& m) {
  py::class_<PySession>(m, "Session")
      .def(py::init([](bool prior, const PyLearned& learned) {
             return SessionWith({}, prior, learned);
           }),
           py::kw_only(), py::arg("prior") = true, py::arg("learned") = py::none())
      .def(py::init([](std::shared_ptr<RecordStore> records, const std::string& library,
                       const std::string& version, bool prior, const PyLearned& learned) {
             return SessionWith(std::make_shared<const SessionCosts>(
                                    std::move(records), RecordFilter{"", library, version}),
                                prior, learned);
           }),
           py::arg("records"), py::arg("library"), py::arg("version"), py::kw_only(),
           py::arg("prior") = true, py::arg("learned") = py::none())
      .def_property_readonly("misses",
                             [](const PySession& self) { return self.session->misses(); });
  py::class_<RankResult, std::shared_ptr<RankResult>>(m, "RankResult")
      .def_readonly("values", &RankResult::values)
      .def_readonly("evaluated", &RankResult::evaluated)
      .def_readonly("bounded", &RankResult::bounded)
      .def_readonly("stopped", &RankResult::stopped)
      .def_readonly("open", &RankResult::open)
      .def_readonly("bound", &RankResult::bound)
      .def_readonly("space", &RankResult::space)
      .def_readonly("excluded", &RankResult::excluded)
      .def_readonly("seconds", &RankResult::seconds)
      // (strategy, bytes of a device, its capacity, advice) where no plan fits, or None.
      .def_property_readonly(
          "nearest",
          [](const RankResult& self)
              -> std::optional<std::tuple<std::string, int64_t, int64_t, std::string>> {
            if (!self.nearest.has_value()) return std::nullopt;
            const NearestPlan& near = *self.nearest;
            return std::make_tuple(near.strategy, near.device_bytes, near.capacity_bytes,
                                   near.advice);
          })
      // The plans live in the result; each keeps it alive.
      .def_property_readonly("plans", [](const std::shared_ptr<RankResult>& self) {
        std::vector<std::shared_ptr<Forecast>> plans;
        for (Forecast& plan : self->plans) plans.emplace_back(self, &plan);
        return plans;
      });
  m.def("predict", &PredictOne, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"), py::arg("cuda_graphs"), py::arg("timeline"),
        py::arg("memory_only_if_unfit"), py::arg("shortcuts"), py::arg("what_if"),
        py::arg("randomness"), py::arg("datasheet"), py::arg("chunk_level"));
  m.def("fit_advice", &AdviseFit, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"), py::arg("datasheet"));
  m.def("fits", &FitsAll, py::arg("model"), py::arg("machine"), py::arg("session"), py::kw_only(),
        py::arg("batch"), py::arg("plans"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"));
  m.def("rank", &RankAll, py::arg("model"), py::arg("machine"), py::arg("session"), py::kw_only(),
        py::arg("batch"), py::arg("space"), py::arg("where"), py::arg("objective"), py::arg("top"),
        py::arg("dtype"), py::arg("profile"), py::arg("precision"), py::arg("cuda_graphs"),
        py::arg("nodes"), py::arg("workers"), py::arg("exhaustive"), py::arg("known"),
        py::arg("partial"), py::arg("progress"), py::arg("found"), py::arg("announce"));
  m.def("compile_passes", &CompilePasses, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"));
  // Uncertainty::Shipped(), scales by name.
  m.def("uncertainty", [] {
    const Uncertainty& u = Uncertainty::Shipped();
    return std::map<std::string, double>{
        {"software_from_source", u.software_from_source},
        {"software_from_documentation", u.software_from_documentation},
        {"plan", u.plan},
        {"slow_tail", u.slow_tail}};
  });
  m.def(
      "profile_lineage",
      [](const std::string& name) { return ValueOrThrow(FindSoftwareProfile(name)).lineage; },
      py::arg("name"));
  m.def(
      "profile_description",
      [](const std::string& name) { return ValueOrThrow(FindSoftwareProfile(name)).description; },
      py::arg("name"));
  m.def(
      "profile_from_documentation",
      [](const std::string& name) {
        return ValueOrThrow(FindSoftwareProfile(name)).from_documentation;
      },
      py::arg("name"));
  m.def(
      "profile_dropout",
      [](const std::string& name) {
        return ValueOrThrow(FindSoftwareProfile(name)).kernels.dropout;
      },
      py::arg("name"));
  m.def(
      "product_grids",
      [](int64_t m, int64_t n, int64_t k, int64_t ranks, std::optional<double> memory,
         int64_t most_idle, std::optional<int64_t> block) {
        using Grid = std::tuple<int64_t, int64_t, int64_t, double, double, int64_t, double, double>;
        std::vector<Grid> grids;
        for (const ProductGrid& g :
             ValueOrThrow(ProductGrids({m, n, k, ranks, memory, most_idle, block}))) {
          grids.emplace_back(g.rows, g.columns, g.layers, g.surface, g.moved, g.steps, g.held,
                             g.busiest);
        }
        return grids;
      },
      py::arg("m"), py::arg("n"), py::arg("k"), py::arg("ranks"), py::arg("memory"),
      py::arg("most_idle"), py::arg("block"));
  m.def("optimizer_moments", [] {
    std::map<std::string, int> moments;
    for (const OptimizerType type : kOptimizerTypeNames.Values()) {
      moments[std::string(kOptimizerTypeNames[type])] = Moments(type, /*matrix=*/true);
    }
    return moments;
  });
  m.def("profile_names", [] { return SoftwareProfileNames(); });
  m.def("profile_additions", [] {
    std::map<std::string, std::string> additions;
    for (const std::string& name : ProfileAdditionNames()) {
      additions[name] = ValueOrThrow(DescribeProfileAddition(name));
    }
    return additions;
  });
  m.def("interleaved_group", &InterleavedGroup, py::arg("stages"), py::arg("micro_batches"));
  // Why the framework of a profile cannot run a plan, or nothing: FrameworkLimits.
  m.def(
      "why_framework_cannot_run",
      [](const std::string& profile, const std::string& plan,
         std::optional<int64_t> micro_batches) {
        const SoftwareProfile known = ValueOrThrow(FindSoftwareProfile(profile));
        return known.limits.WhyNot(ValueOrThrow(ParseShortForm(plan)), known.name, micro_batches);
      },
      py::arg("profile"), py::arg("plan"), py::arg("micro_batches"));
}

}  // namespace plancast
