// Jobs that share the network of a cluster.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "executor/cluster/check_jobs.h"
#include "executor/cluster/cluster_simulation.h"
#include "executor/jobs/placement.h"
#include "planner/plan_phases.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// (name, the tier's node of each node below, uplinks, bytes a second of one, one switch per rail).
using PyTier = std::tuple<std::string, std::vector<int32_t>, int32_t, int64_t, bool>;

Fabric MakeFabric(int64_t hosts, int64_t gpus_per_host, int64_t nics_per_host,
                  int64_t nic_bytes_per_s, int64_t inside_bytes_per_s,
                  const std::vector<PyTier>& tiers) {
  Fabric::Spec spec;
  spec.hosts = hosts;
  spec.gpus_per_host = gpus_per_host;
  spec.nics_per_host = nics_per_host;
  spec.nic_bytes_per_s = nic_bytes_per_s;
  spec.inside_bytes_per_s = inside_bytes_per_s;
  for (const auto& [name, node_of, width, bytes_per_s, by_rail] : tiers) {
    spec.tiers.push_back({name, node_of, width, bytes_per_s, by_rail});
  }
  return ValueOrThrow(Fabric::Create(std::move(spec)));
}

// (compute, transfer, bytes): picoseconds, 0 where not said.
using PyPhase = std::tuple<int64_t, int64_t, double>;
// (name, where it is said, GPUs, placement, devices, arrival ps, iterations or -1, phases,
//  busy ps, work, weight, priority).
using PyClusterJob =
    std::tuple<std::string, std::string, int64_t, std::string, std::vector<int64_t>, int64_t,
               int64_t, std::vector<PyPhase>, int64_t, double, int64_t, int32_t>;

template <typename Names, typename Value>
void Read(const Names& names, const std::string& word, const char* what, Value* value) {
  const auto found = names.Find(word);
  if (!found.has_value()) {
    ThrowStatus(absl::InvalidArgumentError(absl::StrCat("no ", what, " `", word, "`.")));
  }
  *value = *found;
}

ClusterJob MakeClusterJob(const PyClusterJob& from) {
  ClusterJob job;
  std::string placement;
  std::vector<PyPhase> phases;
  int64_t iterations = 0;
  std::tie(job.name, job.where, job.gpus, placement, job.devices, job.arrival_ps, iterations,
           phases, job.busy_ps, job.work, job.weight, job.priority) = from;
  Read(kGpuPlacementNames, placement, "placement", &job.placement);
  if (iterations != -1) job.iterations = iterations;
  for (const auto& [compute_ps, transfer_ps, bytes] : phases) {
    job.phases.push_back({compute_ps, transfer_ps, bytes});
  }
  return job;
}

ClusterOutcome Simulate(const Fabric& fabric, const std::vector<PyClusterJob>& from,
                        const std::string& sharing, const std::string& order, int32_t levels,
                        const std::string& paths, bool backfill, uint64_t seed,
                        std::optional<int64_t> until_ps, bool waits, int64_t slices_until,
                        bool shortcuts, const std::optional<py::bytes>& state, double save_every_s,
                        const py::object& save) {
  std::vector<ClusterJob> jobs;
  for (const PyClusterJob& job : from) jobs.push_back(MakeClusterJob(job));
  ClusterOptions options;
  Read(kClusterSharingNames, sharing, "sharing", &options.sharing);
  Read(kClusterOrderNames, order, "order", &options.order);
  Read(kPathChoiceNames, paths, "choice of paths", &options.paths);
  options.levels = levels;
  options.backfill = backfill;
  options.seed = seed;
  if (until_ps.has_value()) options.until_ps = *until_ps;
  options.waits = waits;
  options.slices_until = slices_until;
  options.shortcuts = shortcuts;
  for (const ClusterJob& job : jobs) {
    if (absl::Status status = CheckJob(job, fabric); !status.ok()) ThrowStatus(status);
  }
  ClusterSimulation simulation(fabric, jobs, options);
  const std::string saved = state.has_value() ? std::string(*state) : std::string();
  // Stops after so long, to save how it stands.
  const auto part = [&]() -> absl::StatusOr<bool> {
    py::gil_scoped_release release;
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(save_every_s);
    int64_t changes = 0;
    return simulation.Run([&] {
      return !save.is_none() && ++changes > 1 && std::chrono::steady_clock::now() >= until;
    });
  };
  if (state.has_value()) {
    if (absl::Status status = simulation.Restore(saved); !status.ok()) ThrowStatus(status);
  }
  while (!ValueOrThrow(part())) save(py::bytes(simulation.Save()));
  return simulation.TakeOutcome();
}

// (iteration ps, network ps, overlapped ps, busy ps, bytes of a host).
std::tuple<int64_t, int64_t, int64_t, double, double> Phases(
    const PyModel& model, const PyMachine& machine, const PyStrategy& strategy,
    const PySession& session, const std::string& name, const std::string& placement,
    std::optional<int64_t> batch, const std::string& dtype, const std::string& profile) {
  Job job = MakeJob(model, batch, dtype, profile);
  job.strategy = strategy.tree;
  const JobRequest request{name, std::move(job), placement};
  auto phases = [&]() -> absl::StatusOr<PlanPhases> {
    py::gil_scoped_release release;
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return PhasesOf(request, machine.machine, session.PricedBy(*costs), *session.session);
  }();
  const PlanPhases found = ValueOrThrow(std::move(phases));
  return {found.iteration_ps, found.network_ps, found.overlapped_ps, found.busy_ps,
          found.host_bytes};
}

template <typename Row, typename Tuple>
std::vector<Tuple> Rows(const std::vector<Row>& rows, Tuple (*of)(const Row&)) {
  std::vector<Tuple> found;
  found.reserve(rows.size());
  for (const Row& row : rows) found.push_back(of(row));
  return found;
}

}  // namespace

void BindCluster(py::module_& m) {
  py::class_<Fabric>(m, "Fabric")
      .def(py::init(&MakeFabric), py::kw_only(), py::arg("hosts"), py::arg("gpus_per_host"),
           py::arg("nics_per_host"), py::arg("nic_bytes_per_s"), py::arg("inside_bytes_per_s"),
           py::arg("tiers"))
      .def_static(
          "of",
          [](const PyMachine& machine, int32_t uplinks) {
            return ValueOrThrow(Fabric::Of(machine.machine, uplinks));
          },
          py::arg("machine"), py::arg("uplinks"))
      .def_property_readonly("hosts", [](const Fabric& self) { return self.spec().hosts; })
      .def_property_readonly("gpus_per_host",
                             [](const Fabric& self) { return self.spec().gpus_per_host; })
      .def_property_readonly("nics_per_host",
                             [](const Fabric& self) { return self.spec().nics_per_host; })
      .def_property_readonly("links", [](const Fabric& self) { return self.capacities().size(); })
      .def("link_name", &Fabric::LinkName, py::arg("link"))
      .def(
          "capacity", [](const Fabric& self, int32_t link) { return self.capacities().at(link); },
          py::arg("link"));

  using Outcome = ClusterOutcome;
  py::class_<Outcome>(m, "ClusterOutcome")
      // (start ps or -1, end ps or -1, iterations, alone ps, steady ps, intensity, correction,
      //  level, devices).
      .def_property_readonly(
          "jobs",
          [](const Outcome& self) {
            using Row = std::tuple<int64_t, int64_t, int64_t, int64_t, double, double, double,
                                   int32_t, std::vector<int64_t>>;
            return Rows<ClusterJobOutcome, Row>(self.jobs, [](const ClusterJobOutcome& job) {
              return Row{job.start_ps,  job.end_ps,     job.iterations, job.alone_ps, job.steady_ps,
                         job.intensity, job.correction, job.level,      job.devices};
            });
          })
      // (link, bytes, bytes a second at the end, jobs).
      .def_property_readonly("links",
                             [](const Outcome& self) {
                               using Row = std::tuple<int32_t, double, double, int32_t>;
                               return Rows<Outcome::Link, Row>(
                                   self.links, [](const Outcome::Link& link) {
                                     return Row{link.link, link.bytes, link.bytes_per_s, link.jobs};
                                   });
                             })
      // (waiter, other, link, seconds).
      .def_property_readonly("waits",
                             [](const Outcome& self) {
                               using Row = std::tuple<int32_t, int32_t, int32_t, double>;
                               return Rows<Outcome::Wait, Row>(
                                   self.waits, [](const Outcome::Wait& wait) {
                                     return Row{wait.waiter, wait.other, wait.link, wait.seconds};
                                   });
                             })
      // (job, from ps, to ps, iteration ps).
      .def_property_readonly("stretches",
                             [](const Outcome& self) {
                               using Row = std::tuple<int32_t, int64_t, int64_t, double>;
                               return Rows<Outcome::Stretch, Row>(
                                   self.stretches, [](const Outcome::Stretch& one) {
                                     return Row{one.job, one.from_ps, one.to_ps, one.iteration_ps};
                                   });
                             })
      // (job, transfer, iteration, start ps, end ps).
      .def_property_readonly(
          "slices",
          [](const Outcome& self) {
            using Row = std::tuple<int32_t, bool, int64_t, int64_t, int64_t>;
            return Rows<Outcome::Slice, Row>(self.slices, [](const Outcome::Slice& slice) {
              return Row{slice.job, slice.transfer, slice.iteration, slice.start_ps, slice.end_ps};
            });
          })
      .def_readonly("end_ps", &Outcome::end_ps)
      .def_readonly("steady_runs", &Outcome::steady_runs)
      .def_readonly("off_by", &Outcome::off_by);

  m.def("simulate_cluster", &Simulate, py::arg("fabric"), py::arg("jobs"), py::kw_only(),
        py::arg("sharing"), py::arg("order"), py::arg("levels"), py::arg("paths"),
        py::arg("backfill"), py::arg("seed"), py::arg("until_ps"), py::arg("waits"),
        py::arg("slices_until"), py::arg("shortcuts"), py::arg("state") = py::none(),
        py::arg("save_every_s") = 0.0, py::arg("save") = py::none());
  m.def(
      "placed_devices",
      [](const PyMachine& machine, const std::string& placement) {
        return ValueOrThrow(ParsePlacement(placement, machine.machine));
      },
      py::arg("machine"), py::arg("placement"));
  m.def("plan_phases", &Phases, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::kw_only(), py::arg("name"), py::arg("placement"), py::arg("batch"),
        py::arg("dtype"), py::arg("profile"));
}

}  // namespace plancast
