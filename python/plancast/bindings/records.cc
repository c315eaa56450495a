// Measured kernels: the store, and prices of single kernels.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cluster/mixed_machine.h"
#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/records/record_store.h"
#include "cost_models/roofline_model.h"
#include "planner/forecast/plan_graph.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// op, shape, dtype, layout: KernelKey's.
using PyKernel = std::array<std::string, 4>;
// GPU, library, version.
using PyWhere = std::array<std::string, 3>;
// seconds, least, most, repetitions, source, timing, date.
using PySample = std::tuple<double, double, double, int64_t, std::string, std::string, std::string>;
// row of the file, kernel, where, sample.
using PyRow = std::tuple<int64_t, PyKernel, PyWhere, PySample>;

KernelKey KeyFrom(const PyKernel& kernel, const PyWhere& where) {
  return {kernel[0], kernel[1], kernel[2], kernel[3], where[0], where[1], where[2]};
}

PyKernel FromKey(const KernelKey& key) { return {key.op, key.shape, key.dtype, key.layout}; }

Sample SampleFrom(const PySample& fields) {
  Sample out;
  std::tie(out.seconds, out.seconds_min, out.seconds_max, out.count, out.source, out.timing,
           out.date) = fields;
  return out;
}

PySample FromSample(const Sample& sample) {
  return {sample.seconds, sample.seconds_min, sample.seconds_max, sample.count,
          sample.source,  sample.timing,      sample.date};
}

int64_t Ingest(RecordStore& store, const std::string& digest, const std::vector<PyRow>& rows) {
  std::vector<Measurement> measurements;
  measurements.reserve(rows.size());
  for (const auto& [row, kernel, where, sample] : rows) {
    measurements.push_back({row, KeyFrom(kernel, where), SampleFrom(sample)});
  }
  return Unlocked([&] { return store.Ingest(digest, measurements); });
}

std::vector<PySample> History(const RecordStore& store, const PyKernel& kernel,
                              const PyWhere& where) {
  std::vector<PySample> out;
  for (const Sample& sample : Unlocked([&] { return store.History(KeyFrom(kernel, where)); })) {
    out.push_back(FromSample(sample));
  }
  return out;
}

std::vector<std::tuple<PyKernel, PyWhere, std::vector<PySample>>> Select(
    const RecordStore& store, const std::string& gpu, const std::string& library,
    const std::string& version) {
  std::vector<std::tuple<PyKernel, PyWhere, std::vector<PySample>>> out;
  for (const Record& record : Unlocked([&] { return store.Select({gpu, library, version}); })) {
    std::vector<PySample> samples;
    for (const Sample& sample : record.samples) samples.push_back(FromSample(sample));
    out.emplace_back(FromKey(record.key),
                     PyWhere{record.key.gpu, record.key.library, record.key.version},
                     std::move(samples));
  }
  return out;
}

std::vector<std::tuple<std::string, std::string, std::string, int64_t, int64_t>> Summarise(
    const RecordStore& store) {
  std::vector<std::tuple<std::string, std::string, std::string, int64_t, int64_t>> out;
  for (const RecordSummary& row : Unlocked([&] { return store.Summarise(); })) {
    out.emplace_back(row.gpu, row.op, row.source, row.kernels, row.samples);
  }
  return out;
}

std::vector<std::tuple<std::string, std::string, int64_t>> Sources(const RecordStore& store) {
  std::vector<std::tuple<std::string, std::string, int64_t>> out;
  for (const auto& source : Unlocked([&] { return store.Sources(); })) {
    out.emplace_back(source.digest, source.name, source.bytes);
  }
  return out;
}

py::dict Price(const PyKernel& kernel, const PyMachine& machine, const PySession& session,
               bool roofline) {
  ThrowIfError(CheckNotMixed(machine.machine, "The price of a kernel"));
  const KernelSpec spec = ValueOrThrow(SpecOf(KeyFrom(kernel, {})));
  const auto cost = Unlocked([&]() -> absl::StatusOr<KernelCost> {
    const DeviceType& device = machine.machine.device();
    if (roofline) {
      return RooflineModel(CoefficientTables::Shipped()).Estimate(spec, device).value();
    }
    auto model = session.costs->For(machine.machine);
    if (!model.ok()) return model.status();
    return (*model)->Estimate(spec, device).value();
  });
  py::dict out;
  out["seconds"] = cost.seconds_alone;
  out["knowledge"] = std::string(kKnowledgeNames[cost.provenance.knowledge]);
  out["source"] = cost.provenance.source;
  out["shared_sigma"] = cost.factor_sigma;
  out["sigma"] = cost.sigma;
  return out;
}

// The distinct kernels of a plan, in the order of its execution graph.
std::vector<PyKernel> PlanKernels(const PyModel& model, const PyMachine& machine,
                                  const PyStrategy& strategy, const PySession& session,
                                  std::optional<int64_t> batch, const std::string& dtype,
                                  const std::string& profile) {
  Job job = MakeJob(model, batch, dtype, profile);
  job.strategy = strategy.tree;
  const PlanGraph plan = Unlocked([&]() -> absl::StatusOr<PlanGraph> {
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    const Pricing pricing(*costs);
    return DrawAndCompile(job, machine.machine, *session.session, &pricing);
  });
  std::vector<PyKernel> kernels;
  std::set<PyKernel> seen;
  for (const KernelSpec& spec : plan.execution->kernels) {
    PyKernel kernel = FromKey(KeyOf(spec));
    if (seen.insert(kernel).second) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

void BindRecords(py::module_& m) {
  py::class_<RecordStore, std::shared_ptr<RecordStore>>(m, "RecordStore")
      .def_static(
          "open",
          [](const std::string& path, bool create) -> std::shared_ptr<RecordStore> {
            return Unlocked([&] {
              return RecordStore::Open(
                  path, create ? RecordStore::Access::kCreate : RecordStore::Access::kRead);
            });
          },
          py::arg("path"), py::arg("create"))
      .def(
          "add",
          [](RecordStore& self, const PyKernel& kernel, const PyWhere& where,
             const PySample& sample) {
            Unlocked([&]() -> absl::StatusOr<bool> {
              const absl::Status status = self.Add(KeyFrom(kernel, where), SampleFrom(sample));
              if (!status.ok()) return status;
              return true;
            });
          },
          py::arg("kernel"), py::arg("where"), py::arg("sample"))
      .def("ingest", &Ingest, py::arg("digest"), py::arg("rows"))
      .def(
          "note_source",
          [](RecordStore& self, const std::string& digest, const std::string& name, int64_t bytes) {
            ThrowIfError(self.NoteSource(digest, name, bytes));
          },
          py::arg("digest"), py::arg("name"), py::arg("bytes"))
      .def("sources", &Sources)
      .def(
          "ingested_rows",
          [](const RecordStore& self, const std::string& digest) {
            return Unlocked([&] { return self.IngestedRows(digest); });
          },
          py::arg("digest"))
      .def(
          "query",
          [](const RecordStore& self, const PyKernel& kernel, const PyWhere& where) {
            return Unlocked([&] { return self.Query(KeyFrom(kernel, where)); });
          },
          py::arg("kernel"), py::arg("where"))
      .def("history", &History, py::arg("kernel"), py::arg("where"))
      .def("select", &Select, py::arg("gpu"), py::arg("library"), py::arg("version"))
      .def("summarise", &Summarise)
      .def("size", [](const RecordStore& self) { return Unlocked([&] { return self.size(); }); })
      .def_property_readonly("path", &RecordStore::path);
  m.def(
      "check_kernel",
      [](const PyKernel& kernel) {
        // Sizes in the order and spelling of keys.
        return FromKey(KeyOf(ValueOrThrow(SpecOf(KeyFrom(kernel, {})))));
      },
      py::arg("kernel"));
  m.def("price_kernel", &Price, py::arg("kernel"), py::arg("machine"), py::arg("session"),
        py::kw_only(), py::arg("roofline"));
  m.def("plan_kernels", &PlanKernels, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"));
}

}  // namespace plancast
