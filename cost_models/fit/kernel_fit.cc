#include "cost_models/fit/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cost_models/attention_model.h"
#include "cost_models/convolution_model.h"
#include "cost_models/fit/portable_math.h"
#include "cost_models/gemm_model.h"
#include "cost_models/matmul_unit.h"
#include "cost_models/memory_model.h"

namespace plancast {
namespace {

// The time of the kernel at an index with some coefficients.
template <typename C>
using Formula = std::function<double(size_t index, const C& coefficients)>;

template <typename C>
absl::StatusOr<C> Filled(absl::Span<const CoefficientField<C>> fields, C base,
                         const NamedCoefficients& named) {
  for (const CoefficientField<C>& field : fields) base.*field.member = field.start;
  for (const auto& [name, value] : named) {
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; });
    if (field == fields.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no coefficient `", name, "`; known: ",
          absl::StrJoin(fields, ", ",
                        [](std::string* out, const auto& f) { absl::StrAppend(out, f.name); }),
          "."));
    }
    base.*field->member = value;
  }
  return base;
}

absl::Status NotPriced(const KernelSpec& kernel, const DeviceType& device) {
  return absl::InvalidArgumentError(absl::StrCat("`", kernel.DebugString(), "` on `", device.name,
                                                 "`: a size or a rate of the GPU is missing."));
}

GemmCoefficients GemmBase() {
  GemmCoefficients c;
  c.tiles = LibraryTiles();
  c.splits = LibrarySplits();
  return c;
}

struct Product {
  MatmulUnit unit;
  KernelSpec kernel;
  double bytes;
};

// What a family prices with: its fields and its formula over `kernels`. `use(fields, base,
// formula)` is called with them.
template <typename Use>
auto WithFormula(KernelFamily family, const DeviceType& device,
                 absl::Span<const KernelSpec> kernels, Use use)
    -> decltype(use(GemmFields(), GemmBase(), Formula<GemmCoefficients>())) {
  const bool has_memory = device.memory_bytes_per_s > 0;
  if (family == KernelFamily::kAttention) {
    std::vector<MatmulUnit> units;
    for (const KernelSpec& kernel : kernels) {
      units.push_back(AttentionUnit(device, kernel.dtype));
      if (!IsAttention(kernel) || units.back().peak_flops <= 0 || !has_memory || device.sms < 1) {
        return NotPriced(kernel, device);
      }
    }
    return use(AttentionFields(), AttentionCoefficients{},
               Formula<AttentionCoefficients>([&](size_t i, const AttentionCoefficients& c) {
                 return TimeOfAttention(kernels[i], c, units[i], device).seconds;
               }));
  }
  if (family == KernelFamily::kMemory) {
    for (const KernelSpec& kernel : kernels) {
      if (!has_memory) return NotPriced(kernel, device);
    }
    return use(MemoryFields(), MemoryCoefficients{},
               Formula<MemoryCoefficients>([&](size_t i, const MemoryCoefficients& c) {
                 return TimeOfMemory(kernels[i], c, device);
               }));
  }
  std::vector<Product> products;
  for (const KernelSpec& kernel : kernels) {
    const MatmulUnit unit = MatmulUnitFor(device, kernel.dtype);
    const bool convolution = kernel.family == KernelFamily::kConvolution;
    Product product{unit, convolution ? ProductOfConvolution(kernel, device) : kernel,
                    kernel.read_bytes + kernel.write_bytes};
    if (!convolution) product.bytes = std::max(product.bytes, ProductBytes(kernel, unit.runs));
    if (std::min({kernel.batch, kernel.m, kernel.n, kernel.k}) < 1 || unit.peak_flops <= 0 ||
        !has_memory || device.sms < 1) {
      return NotPriced(kernel, device);
    }
    products.push_back(std::move(product));
  }
  return use(GemmFields(), GemmBase(),
             Formula<GemmCoefficients>([&](size_t i, const GemmCoefficients& c) {
               const Product& p = products[i];
               return TimeOfProduct(p.kernel, c, p.unit, device, p.bytes).seconds;
             }));
}

// Log of modelled over measured time.
template <typename C>
FitResult FitFrom(absl::Span<const CoefficientField<C>* const> wanted, const C& base,
                  const Formula<C>& formula, const MeasuredKernels& measured,
                  const FitOptions& options) {
  std::vector<Bounds> bounds;
  std::vector<double> start;
  for (const CoefficientField<C>* field : wanted) {
    bounds.push_back(field->bounds);
    start.push_back(base.*field->member);
  }
  C c = base;
  const auto residuals = [&](absl::Span<const double> parameters, absl::Span<double> out) {
    for (size_t p = 0; p < parameters.size(); ++p) c.*wanted[p]->member = parameters[p];
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = PortableLog(formula(i, c) / measured.seconds[i]);
    }
  };
  return Minimise(residuals, measured.weights, bounds, start, options);
}

absl::Status Check(const MeasuredKernels& measured) {
  const size_t count = measured.kernels.size();
  if (count == 0) return absl::InvalidArgumentError("no kernel was measured; give one at least.");
  if (measured.seconds.size() != count || measured.weights.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(count, " kernels have ", measured.seconds.size(),
                                                   " times and ", measured.weights.size(),
                                                   " weights. Give one of each per kernel."));
  }
  for (const double seconds : measured.seconds) {
    if (seconds > 0 && std::isfinite(seconds)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a kernel took ", seconds, " s. Leave out what has no positive time."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<double>> PriceKernels(KernelFamily family, const DeviceType& device,
                                                 absl::Span<const KernelSpec> kernels,
                                                 const NamedCoefficients& coefficients) {
  std::vector<double> seconds(kernels.size());
  const auto price = [&](auto fields, auto base, const auto& formula) -> absl::Status {
    ASSIGN_OR_RETURN(const auto c, Filled(fields, std::move(base), coefficients));
    for (size_t i = 0; i < seconds.size(); ++i) seconds[i] = formula(i, c);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(WithFormula(family, device, kernels, price));
  return seconds;
}

absl::StatusOr<NamedCoefficients> FitKernels(const MeasuredKernels& measured,
                                             const std::vector<std::string>& wanted,
                                             const NamedCoefficients& known,
                                             const std::vector<NamedCoefficients>& starts,
                                             const FitOptions& options) {
  RETURN_IF_ERROR(Check(measured));
  NamedCoefficients result = known;
  const auto fit = [&](auto fields, auto base, const auto& formula) -> absl::Status {
    using Field = typename decltype(fields)::value_type;
    std::vector<const Field*> chosen;
    for (const std::string& name : wanted) {
      RETURN_IF_ERROR(Filled(fields, base, {{name, 0.0}}).status());
      for (const auto& field : fields) {
        if (field.name == name) chosen.push_back(&field);
      }
    }
    FitResult best;
    for (const NamedCoefficients& start : starts) {
      NamedCoefficients named = known;
      for (const auto& [name, value] : start) named[name] = value;
      ASSIGN_OR_RETURN(const auto from, Filled(fields, base, named));
      FitResult end =
          FitFrom<std::decay_t<decltype(from)>>(chosen, from, formula, measured, options);
      if (best.parameters.empty() || end.loss < best.loss) best = std::move(end);
    }
    for (size_t p = 0; p < best.parameters.size(); ++p) {
      result[std::string(chosen[p]->name)] = best.parameters[p];
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(WithFormula(measured.family, measured.device, measured.kernels, fit));
  return result;
}

}  // namespace plancast
