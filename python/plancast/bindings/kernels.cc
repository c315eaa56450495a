#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/embedded_file.h"
#include "cost_models/attention_kernels.h"
#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/fit/kernel_fit.h"
#include "cost_models/fit/kernel_work.h"
#include "cost_models/fit/portable_math.h"
#include "cost_models/model_chain.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

using Column = std::vector<double>;
using Columns = std::map<std::string, Column>;
using Figures = std::map<std::string, double>;

absl::Status Unknown(const char* what, const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat("no ", what, " `", name, "`."));
}

KernelFamily FamilyOf(const std::string& name) {
  const auto family = kKernelFamilyNames.Find(name);
  // Optimizers are memory kernels to the models: they have no coefficients of their own.
  if (!family || *family == KernelFamily::kOptimizer) ThrowStatus(Unknown("kernel family", name));
  return *family;
}

DeviceType DeviceOf(const std::string& name, const Figures& figures) {
  DeviceType device;
  device.name = name;
  const std::map<std::string, double*> fields = {{"memory_bytes_per_s", &device.memory_bytes_per_s},
                                                 {"l2_bytes", &device.l2_bytes},
                                                 {"fp32_flops", &device.fp32_flops},
                                                 {"tf32_flops", &device.tf32_flops},
                                                 {"fp16_flops", &device.fp16_flops},
                                                 {"bf16_flops", &device.bf16_flops},
                                                 {"fp8_flops", &device.fp8_flops},
                                                 {"fp4_flops", &device.fp4_flops},
                                                 {"boost_mhz", &device.boost_mhz},
                                                 {"tdp_watts", &device.tdp_watts}};
  for (const auto& [field, value] : figures) {
    if (field == "sms") {
      device.sms = static_cast<int>(value);
      continue;
    }
    const auto found = fields.find(field);
    if (found == fields.end()) ThrowStatus(Unknown("figure of a GPU", field));
    *found->second = value;
  }
  return device;
}

using Setter = std::function<void(KernelSpec&, double)>;

template <typename T>
Setter Sets(T KernelSpec::*field) {
  return [field](KernelSpec& kernel, double value) { kernel.*field = static_cast<T>(value); };
}

const std::map<std::string, Setter>& Setters() {
  using K = KernelSpec;
  static const std::map<std::string, Setter> kSetters = {
      {"batch", Sets(&K::batch)},
      {"m", Sets(&K::m)},
      {"n", Sets(&K::n)},
      {"k", Sets(&K::k)},
      {"pass", [](K& k, double pass) { k.pass = static_cast<GemmPass>(static_cast<int>(pass)); }},
      {"accumulate_fp32", Sets(&K::accumulate_fp32)},
      {"window", Sets(&K::window)},
      {"stride", Sets(&K::stride)},
      {"channels_last", Sets(&K::channels_last)},
      {"heads", Sets(&K::heads)},
      {"kv_heads", Sets(&K::kv_heads)},
      {"q_len", Sets(&K::q_len)},
      {"kv_len", Sets(&K::kv_len)},
      {"head_dim", Sets(&K::head_dim)},
      {"head_dim_v", Sets(&K::head_dim_v)},
      {"causal", Sets(&K::causal)},
      {"backward", Sets(&K::backward)},
      {"read_bytes", Sets(&K::read_bytes)},
      {"write_bytes", Sets(&K::write_bytes)},
      {"reread_bytes", Sets(&K::reread_bytes)},
      {"row_bytes", Sets(&K::row_bytes)},
      {"launches", Sets(&K::launches)}};
  return kSetters;
}

// One kernel per row of the columns, which are named as the fields of KernelSpec.
std::vector<KernelSpec> KernelsOf(KernelFamily family, const std::string& dtype,
                                  const Columns& columns) {
  KernelSpec base;
  base.family = family;
  base.library = std::string(AttentionKernels::kAsMeasured);
  base.dtype = ValueOrThrow(ParseDType(dtype));
  const size_t rows = columns.empty() ? 0 : columns.begin()->second.size();
  std::vector<KernelSpec> kernels(rows, base);
  for (const auto& [name, column] : columns) {
    const auto setter = Setters().find(name);
    if (setter == Setters().end()) ThrowStatus(Unknown("size of a kernel", name));
    if (column.size() != rows) {
      ThrowStatus(absl::InvalidArgumentError(absl::StrCat("column `", name, "` has ", column.size(),
                                                          " rows and others have ", rows, ".")));
    }
    for (size_t i = 0; i < rows; ++i) setter->second(kernels[i], column[i]);
  }
  return kernels;
}

// Coefficients from the texts of files, and the chain of models over them.
class KernelTables {
 public:
  explicit KernelTables(const std::map<std::string, std::string>& files) {
    std::vector<EmbeddedFile> embedded;
    for (const auto& [path, text] : files) embedded.push_back({path, text});
    tables_ = std::make_unique<CoefficientTables>(ValueOrThrow(CoefficientTables::Parse(embedded)));
    chain_ = ModelChain(*tables_);
  }

  std::vector<KernelCost> Estimate(const std::vector<KernelSpec>& kernels,
                                   const DeviceType& device) const {
    std::vector<KernelCost> costs;
    for (const KernelSpec& kernel : kernels) {
      costs.push_back(chain_->Estimate(WithWork(kernel, device), device).value());
    }
    return costs;
  }

 private:
  std::unique_ptr<CoefficientTables> tables_;
  std::shared_ptr<const KernelCostModel> chain_;
};

}  // namespace

void BindKernels(py::module_& m) {
  m.def("library_tiles", [] {
    std::vector<std::pair<int64_t, int64_t>> tiles;
    for (const GemmCoefficients::Tile& tile : LibraryTiles()) tiles.emplace_back(tile.m, tile.n);
    return tiles;
  });
  m.def("library_splits", &LibrarySplits);
  m.def(
      "price_kernels",
      [](const std::string& family, const std::string& gpu, const Figures& figures,
         const std::string& dtype, const Columns& columns, const NamedCoefficients& coefficients) {
        const auto kernels = KernelsOf(FamilyOf(family), dtype, columns);
        return ValueOrThrow(
            PriceKernels(FamilyOf(family), DeviceOf(gpu, figures), kernels, coefficients));
      },
      py::arg("family"), py::arg("gpu"), py::arg("figures"), py::arg("dtype"), py::arg("kernels"),
      py::arg("coefficients"));
  m.def(
      "fit_kernels",
      [](const std::string& family, const std::string& gpu, const Figures& figures,
         const std::string& dtype, const Columns& columns, const Column& seconds,
         const Column& weights, const std::vector<std::string>& wanted,
         const NamedCoefficients& known, const std::vector<NamedCoefficients>& starts) {
        MeasuredKernels measured;
        measured.family = FamilyOf(family);
        measured.device = DeviceOf(gpu, figures);
        measured.kernels = KernelsOf(measured.family, dtype, columns);
        measured.seconds = seconds;
        measured.weights = weights;
        absl::StatusOr<NamedCoefficients> fitted = absl::UnknownError("");
        {
          py::gil_scoped_release release;
          fitted = FitKernels(measured, wanted, known, starts);
        }
        return ValueOrThrow(std::move(fitted));
      },
      py::arg("family"), py::arg("gpu"), py::arg("figures"), py::arg("dtype"), py::arg("kernels"),
      py::arg("seconds"), py::arg("weights"), py::arg("wanted"), py::arg("known"),
      py::arg("starts"));
  m.def("portable_exp", &PortableExp, py::arg("x"));
  m.def("portable_log", &PortableLog, py::arg("x"));
  py::class_<KernelTables>(m, "KernelTables")
      .def(py::init<const std::map<std::string, std::string>&>(), py::arg("files"))
      .def(
          "price",
          [](const KernelTables& self, const std::string& family, const std::string& gpu,
             const Figures& figures, const std::string& dtype, const Columns& columns) {
            std::vector<double> seconds;
            for (const KernelCost& cost : self.Estimate(KernelsOf(FamilyOf(family), dtype, columns),
                                                        DeviceOf(gpu, figures))) {
              seconds.push_back(cost.seconds_alone);
            }
            return seconds;
          },
          py::arg("family"), py::arg("gpu"), py::arg("figures"), py::arg("dtype"),
          py::arg("kernels"));
}

}  // namespace plancast
