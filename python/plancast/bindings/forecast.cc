#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/picoseconds.h"
#include "interop/chrome_trace.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

constexpr double kPicosecond = ToSeconds(1);

// The parts in the order of plancast.parts.PARTS.
using Parts = std::array<double, 13>;

// Picoseconds.
Parts PartsOf(const Breakdown& b) {
  Parts parts;
  size_t i = 0;
  for (int64_t part :
       {b.compute, b.recompute, b.exposed_tp, b.exposed_dp, b.exposed_pp, b.exposed_cp,
        b.exposed_ep, b.exposed_offload, b.bubble, b.straggler, b.launch, b.optimizer, b.other}) {
    parts[i++] = static_cast<double>(part);
  }
  return parts;
}

// Seconds, mean over devices.
Parts MeanBreakdown(const SimResult& result) {
  Parts sum = {};
  double devices = 0;
  for (const DeviceClassResult& entry : result.classes) {
    const Parts parts = PartsOf(entry.breakdown);
    const double members = static_cast<double>(entry.devices);
    for (size_t i = 0; i < parts.size(); ++i) sum[i] += members * parts[i];
    devices += members;
  }
  for (double& part : sum) part *= devices > 0 ? kPicosecond / devices : 0;
  return sum;
}

Parts CriticalPath(const SimResult& result) {
  Parts parts = PartsOf(result.critical_path);
  for (double& part : parts) part *= kPicosecond;
  return parts;
}

// With what runs take beyond what is simulated, in proportion, so that the parts sum to the
// iteration.
Parts Scaled(Parts parts, const Forecast& forecast) {
  for (double& part : parts) part *= forecast.beyond_simulated();
  return parts;
}

// Of the slices from `begin` to before `end`; a piece at a time, since nobody else runs Python
// while a list of Python's is made.
py::list Slices(const Forecast& forecast, size_t begin, size_t end) {
  py::list out;
  end = std::min(end, forecast.result.slices.size());
  for (size_t i = begin; i < end; ++i) {
    const Slice& slice = forecast.result.slices[i];
    const Block& block = forecast.timeline_graph->blocks[slice.block];
    out.append(py::make_tuple(
        forecast.result.classes[slice.device_class].name, std::string(kStreamNames[slice.stream]),
        std::string(kPurposeNames[slice.purpose]), block.label[slice.task], slice.layer,
        slice.micro_batch, slice.chunk, ToSeconds(slice.start_ps), ToSeconds(slice.end_ps)));
  }
  return out;
}

py::dict Factors(const Forecast& forecast) {
  py::dict out;
  for (const auto& [name, share] : forecast.result.factors) {
    out[py::str(name)] = py::make_tuple(share.seconds * forecast.beyond_simulated(), share.sigma);
  }
  return out;
}

// The factors of kernels that other GPUs stand for.
std::vector<std::string> ExtrapolatedFactors(const Forecast& forecast) {
  std::vector<std::string> names;
  for (const auto& [name, share] : forecast.result.factors) {
    if (share.extrapolated) names.push_back(name);
  }
  return names;
}

// None where nothing was drawn; seconds.
py::object DistributionOf(const Forecast& forecast) {
  if (!forecast.distribution.has_value()) return py::none();
  const Distribution& distribution = *forecast.distribution;
  const double beyond = forecast.beyond_simulated();
  py::list samples;
  for (int64_t time : distribution.samples_ps) {
    samples.append(ToSeconds(forecast.software_level.RunPicoseconds(time)));
  }
  py::dict out;
  out["seed"] = distribution.drawn.seed;
  out["jitter"] = distribution.drawn.jitter;
  out["straggler_probability"] = distribution.drawn.straggler_probability;
  out["straggler_speed"] = distribution.drawn.straggler_speed;
  out["mean_s"] = distribution.mean_s() * beyond;
  out["stddev_s"] = distribution.stddev_s() * beyond;
  out["p5_s"] = distribution.quantile_s(0.05) * beyond;
  out["p50_s"] = distribution.quantile_s(0.5) * beyond;
  out["p95_s"] = distribution.quantile_s(0.95) * beyond;
  out["samples_s"] = std::move(samples);
  return std::move(out);
}

py::dict CountersOf(const Forecast& forecast) {
  const Counters& counters = forecast.result.counters;
  py::dict out;
  out["tasks"] = counters.tasks;
  out["device_classes"] = counters.device_classes;
  out["blocks"] = counters.blocks;
  out["instances"] = counters.instances;
  out["materialised_tasks"] = counters.materialised_tasks;
  return out;
}

}  // namespace

void BindForecast(py::module_& m) {
  py::class_<Forecast, std::shared_ptr<Forecast>> forecast(m, "Forecast");
  forecast.def_readonly("model", &Forecast::model)
      .def_readonly("machine", &Forecast::machine)
      .def_readonly("strategy", &Forecast::strategy)
      .def_readonly("profile", &Forecast::profile)
      .def_readonly("iteration_time_s", &Forecast::iteration_time_s)
      .def_property_readonly("interval_s",
                             [](const Forecast& self) {
                               return std::make_pair(self.interval_s[0], self.interval_s[1]);
                             })
      .def_readonly("sigma_relative", &Forecast::sigma_relative)
      .def_readonly("global_batch", &Forecast::global_batch)
      .def_readonly("seq", &Forecast::seq)
      .def_readonly("devices", &Forecast::devices)
      .def_readonly("model_flops", &Forecast::model_flops)
      .def_readonly("hardware_flops", &Forecast::hardware_flops)
      .def_readonly("peak_flops_per_gpu", &Forecast::peak_flops_per_gpu)
      .def_readonly("flops_formula", &Forecast::flops_formula)
      .def_readonly("peak_memory_bytes", &Forecast::peak_memory_bytes)
      .def_readonly("memory_capacity_bytes", &Forecast::memory_capacity_bytes)
      .def_property_readonly(
          "memory_capacities",
          [](const Forecast& self) {
            std::vector<int64_t> capacities;
            for (const DeviceClassResult& entry : self.result.classes) {
              // Jobs on part of a machine do not know theirs.
              capacities.push_back(entry.memory.capacity > 0
                                       ? entry.memory.capacity
                                       : static_cast<int64_t>(self.memory_capacity_bytes));
            }
            return capacities;
          })
      .def_readonly("fits", &Forecast::fits)
      .def_readonly("chosen", &Forecast::chosen)
      .def_readonly("trained_parameters", &Forecast::trained_parameters)
      .def_readonly("notes", &Forecast::notes)
      .def_readonly("warnings", &Forecast::warnings)
      .def_readonly("simulate_s", &Forecast::simulate_s)
      .def_readonly("usd_per_iteration", &Forecast::usd_per_iteration)
      .def_readonly("kwh_per_iteration", &Forecast::kwh_per_iteration)
      .def_property_readonly("software_level",
                             [](const Forecast& self) {
                               const SoftwareLevel& level = self.software_level;
                               return py::make_tuple(level.log, level.sources, level.lineage);
                             })
      .def_readonly("learned_log", &Forecast::learned_log)
      // By name: the share of the time that hangs on it, and its scale.
      .def_property_readonly("learnable",
                             [](const Forecast& self) {
                               std::map<std::string, std::pair<double, double>> out;
                               for (const auto& [name, share] : LearnableShares(self.result)) {
                                 out[name] = {share.share, share.sigma};
                               }
                               return out;
                             })
      .def_property_readonly("provenance_seconds",
                             [](const Forecast& self) { return self.result.provenance_seconds; })
      .def_property_readonly("own_variance_s2",
                             [](const Forecast& self) {
                               const double beyond = self.beyond_simulated();
                               return self.result.own_variance_s2 * beyond * beyond;
                             })
      // (name, program, lowest device, devices, parts in picoseconds as simulated) of each class
      // of devices.
      .def_property_readonly(
          "stages_ps",
          [](const Forecast& self) {
            std::vector<std::tuple<std::string, int32_t, int64_t, int64_t, std::array<int64_t, 13>>>
                out;
            for (const DeviceClassResult& entry : self.result.classes) {
              const Parts parts = PartsOf(entry.breakdown);
              std::array<int64_t, 13> whole = {};
              std::copy(parts.begin(), parts.end(), whole.begin());
              out.emplace_back(entry.name, entry.program, entry.representative, entry.devices,
                               whole);
            }
            return out;
          })
      .def_property_readonly("simulated_ps",
                             [](const Forecast& self) { return self.result.makespan_ps; })
      .def_property_readonly("factors", &Factors)
      .def_property_readonly("extrapolated_factors", &ExtrapolatedFactors)
      .def_property_readonly("counters", &CountersOf)
      .def_property_readonly("distribution", &DistributionOf)
      .def_property_readonly("has_timeline",
                             [](const Forecast& self) { return self.timeline_graph != nullptr; })
      .def("breakdown_s",
           [](const Forecast& self) { return Scaled(MeanBreakdown(self.result), self); })
      .def("critical_path_s",
           [](const Forecast& self) { return Scaled(CriticalPath(self.result), self); })
      .def_property_readonly("slice_count",
                             [](const Forecast& self) { return self.result.slices.size(); })
      .def("slices", &Slices, py::arg("begin"), py::arg("end"))
      .def("chrome_trace", [](const Forecast& self) {
        py::gil_scoped_release release;
        return ChromeTrace(*self.timeline_graph, self.result);
      });
  BindMemory(forecast);
}

}  // namespace plancast
