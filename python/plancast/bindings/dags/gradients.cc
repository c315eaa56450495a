// When the gradients of data-parallel workers are sent.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "executor/gradients/gradient_run.h"
#include "planner/plan_gradients.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// (name, forward ps, backward ps, update ps, bytes).
using PyUnit = std::tuple<std::string, int64_t, int64_t, int64_t, int64_t>;

// (units, passes of an iteration, ps of the host, what runs take of what is simulated).
std::tuple<std::vector<PyUnit>, int64_t, int64_t, double> OfPlan(
    const PyModel& model, const PyMachine& machine, const PyStrategy& strategy,
    const PySession& session, std::optional<int64_t> batch, const std::string& dtype,
    const std::string& profile, const PyPrecision& precision) {
  Job job = MakeJob(model, batch, dtype, profile, precision);
  job.strategy = strategy.tree;
  auto made = [&]() -> absl::StatusOr<PlanGradients> {
    py::gil_scoped_release release;
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return GradientsOf(job, machine.machine, session.PricedBy(*costs), *session.session);
  }();
  const PlanGradients plan = ValueOrThrow(std::move(made));
  std::vector<PyUnit> units;
  for (const GradientUnit& unit : plan.units) {
    units.emplace_back(unit.name, unit.forward_ps, unit.backward_ps, unit.update_ps, unit.bytes);
  }
  return {std::move(units), plan.passes, plan.fixed_ps, std::exp(plan.level.log)};
}

// The machine of the workers and, behind it, as many hosts more with the same interfaces.
absl::StatusOr<Machine> WithServers(const Machine& machine, int64_t servers) {
  if (servers <= 0) return machine;
  Machine::Spec spec = machine.spec();
  spec.hosts += servers;
  if (spec.hosts_per_pod > 0) {
    return absl::UnimplementedError(
        "not supported yet: servers beside workers in pods. Take a machine without pods.");
  }
  return Machine::Create(std::move(spec));
}

GradientRun Run(const std::vector<PyUnit>& rows, const PyMachine& machine, int64_t bucket,
                int64_t first_bucket, int64_t partition, bool by_priority, int64_t credit,
                bool waits_for_all, int64_t overhead_ps, int64_t host_ps, int64_t passes,
                bool each_pass_sends, int64_t servers, bool sums_in_hosts, int64_t spread,
                const std::optional<std::pair<double, double>>& line,
                std::pair<double, double> copies_s_per_byte, int64_t flag_bytes) {
  std::vector<GradientUnit> units;
  for (const auto& [name, forward, backward, update, bytes] : rows) {
    units.push_back({name, forward, backward, update, bytes});
  }
  GradientTraffic traffic;
  traffic.bucket_bytes = bucket;
  traffic.first_bucket_bytes = first_bucket;
  traffic.partition_bytes = partition;
  traffic.by_priority = by_priority;
  traffic.credit_bytes = credit;
  traffic.waits_for_all = waits_for_all;
  traffic.overhead_ps = overhead_ps;
  traffic.host_ps = host_ps;
  traffic.passes = passes;
  traffic.each_pass_sends = each_pass_sends;
  traffic.server_hosts = servers;
  traffic.sums_in_hosts = sums_in_hosts;
  traffic.spread_bytes = spread;
  std::tie(traffic.pack_s_per_byte, traffic.unpack_s_per_byte) = copies_s_per_byte;
  traffic.flag_bytes = flag_bytes;
  if (line.has_value()) traffic.line = {line->first, line->second};
  auto run = [&]() -> absl::StatusOr<GradientRun> {
    py::gil_scoped_release release;
    ASSIGN_OR_RETURN(const Machine all, WithServers(machine.machine, servers));
    return RunGradients(units, traffic, all);
  }();
  return ValueOrThrow(std::move(run));
}

}  // namespace

void BindGradients(py::module_& m) {
  py::class_<GradientRun>(m, "GradientRun")
      .def_readonly("iteration_ps", &GradientRun::iteration_ps)
      .def_readonly("compute_ps", &GradientRun::compute_ps)
      .def_readonly("workers", &GradientRun::workers)
      .def_readonly("messages", &GradientRun::messages)
      .def_readonly("parts", &GradientRun::parts)
      .def_readonly("most_in_flight", &GradientRun::most_in_flight)
      .def_readonly("sent_bytes", &GradientRun::sent_bytes)
      // (kind, unit, bytes, begin ps, end ps), of worker 0, by end.
      .def_property_readonly("spans", [](const GradientRun& self) {
        static constexpr const char* kKinds[] = {"forward", "backward", "update", "host",  "reduce",
                                                 "gather",  "push",     "pull",   "unpack"};
        std::vector<std::tuple<std::string, int32_t, int64_t, int64_t, int64_t>> rows;
        rows.reserve(self.spans.size());
        for (const GradientSpan& span : self.spans) {
          rows.emplace_back(kKinds[static_cast<int>(span.task.kind)], span.task.unit,
                            span.task.bytes, span.begin_ps, span.end_ps);
        }
        return rows;
      });
  m.def("plan_gradients", &OfPlan, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"));
  m.def("run_gradients", &Run, py::arg("units"), py::arg("machine"), py::kw_only(),
        py::arg("bucket"), py::arg("first_bucket"), py::arg("partition"), py::arg("by_priority"),
        py::arg("credit"), py::arg("waits_for_all"), py::arg("overhead_ps"), py::arg("host_ps"),
        py::arg("passes"), py::arg("each_pass_sends"), py::arg("servers"), py::arg("sums_in_hosts"),
        py::arg("spread"), py::arg("line"), py::arg("copies_s_per_byte") = std::make_pair(0.0, 0.0),
        py::arg("flag_bytes") = 0);
}

}  // namespace plancast
