#include "cost_models/coefficients/coefficient_tables.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "cost_models/coefficients/coefficients_proto.h"
#include "cost_models/coefficients_data.h"
#include "cost_models/matmul_unit.h"
#include "cost_models/power_caps.h"
#include "proto/kernel_cost.pb.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

template <typename Coefficients>
CoefficientEntry<Coefficients> MakeEntry(const proto::KernelCostCoefficients& file,
                                         const proto::Fit& fit, Coefficients coefficients,
                                         absl::string_view dtype = "") {
  CoefficientEntry<Coefficients> entry;
  entry.gpu = file.gpu();
  entry.vendor = file.vendor();
  entry.sms = file.sms();
  entry.same_chip.assign(file.same_chip().begin(), file.same_chip().end());
  entry.speed_grade = dtype == "fp32" ? file.fp32_speed_grade() : file.speed_grade();
  entry.coefficients = std::move(coefficients);
  if (file.tdp_watts() > 0 && dtype != "fp32") {
    entry.power_density =
        file.speed_grade() * file.sms() * file.boost_mhz() * 1e6 / 1e12 / file.tdp_watts();
  }
  entry.provenance = {Knowledge::kCalibrated,
                      absl::StrCat(file.gpu(), ", ", fit.data(), ", ", fit.date())};
  entry.factor_sigma = fit.factor_sigma();
  entry.sigma = fit.sigma();
  return entry;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

template <typename Coefficients>
using Entries = std::vector<const CoefficientEntry<Coefficients>*>;

template <typename Coefficients, typename Value>
double MedianOf(const Entries<Coefficients>& all, Value value) {
  std::vector<double> values;
  for (const auto* entry : all) values.push_back(value(*entry));
  return Median(std::move(values));
}

// Medians of the fields; everything else from the first.
template <typename Coefficients>
Coefficients Medians(const Entries<Coefficients>& all,
                     std::initializer_list<double Coefficients::*> fields) {
  Coefficients result = all[0]->coefficients;
  for (double Coefficients::*field : fields) {
    result.*field = MedianOf<Coefficients>(all, [&](auto& e) { return e.coefficients.*field; });
  }
  return result;
}

using GemmEntry = CoefficientEntry<GemmCoefficients>;

// Share of its rate that a chip keeps where it has this many TFLOP/s per watt more.
double Kept(double slope, double more) { return std::exp(-slope * more); }

GemmCoefficients GemmMedians(const Entries<GemmCoefficients>& members,
                             const Entries<GemmCoefficients>& everyone, double power_density,
                             double power_slope) {
  using C = GemmCoefficients;
  C result = Medians<C>(
      members, {&C::tile_overhead_k, &C::wave_quantization, &C::memory_fraction,
                &C::small_tile_cost, &C::sustained_loss, &C::quantize_bytes, &C::saturating_sms,
                &C::split_floors, &C::forward_factor, &C::dgrad_factor, &C::wgrad_factor,
                &C::promotion_factor, &C::accumulation_bytes});
  result.mma_fraction = MedianOf<C>(members, [&](const GemmEntry& e) {
    const double more = e.power_density > 0 ? power_density - e.power_density : 0;
    return std::min(e.coefficients.mma_fraction * Kept(power_slope, more), 1.0);
  });
  // Launching is the same on every SM design.
  result.floor_s = MedianOf<C>(everyone, [](const GemmEntry& e) { return e.coefficients.floor_s; });
  return result;
}

AttentionCoefficients AttentionMedians(const Entries<AttentionCoefficients>& members) {
  using C = AttentionCoefficients;
  C result = Medians<C>(members,
                        {&C::mma_fraction, &C::softmax_dim, &C::tail, &C::floor_s, &C::causal_loss,
                         &C::backward_factor, &C::latent_backward_factor, &C::backward_floor_s,
                         &C::memory_fraction, &C::backward_factor_sigma, &C::backward_sigma});
  const C& first = members.front()->coefficients;
  const bool same = std::all_of(members.begin(), members.end(), [&](const auto* e) {
    return e->coefficients.kernel == first.kernel &&
           e->coefficients.architecture == first.architecture;
  });
  if (same) {
    result.kernel = first.kernel;
    result.architecture = first.architecture;
  }
  return result;
}

ConvolutionCoefficients ConvolutionMedians(const Entries<ConvolutionCoefficients>& members) {
  using C = ConvolutionCoefficients;
  C result;
  for (int shape = 0; shape < C::kShapes; ++shape) {
    for (int pass = 0; pass < C::kPasses; ++pass) {
      result.factors[shape][pass] =
          MedianOf<C>(members, [&](auto& e) { return e.coefficients.factors[shape][pass]; });
    }
  }
  return result;
}

MemoryCoefficients MemoryMedians(const Entries<MemoryCoefficients>& members) {
  using C = MemoryCoefficients;
  return Medians<C>(members, {&C::memory_fraction, &C::floor_s});
}

}  // namespace

CoefficientTables::ByType& CoefficientTables::OfType(absl::string_view dtype) {
  for (ByType& type : types_) {
    if (type.dtype == dtype) return type;
  }
  types_.push_back({std::string(dtype), {}, {}, {}});
  return types_.back();
}

const CoefficientTables::ByType* CoefficientTables::FindType(absl::string_view dtype) const {
  for (const ByType& type : types_) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

absl::StatusOr<CoefficientTables> CoefficientTables::Parse(absl::Span<const EmbeddedFile> files) {
  CoefficientTables tables;
  bool has_roofline = false;
  double gemm_sigma = 0.15, attention_sigma = 0.15, memory_sigma = 0.1, convolution_sigma = 0.2;
  for (const EmbeddedFile& file : files) {
    ASSIGN_OR_RETURN(auto in,
                     ParseTextProto<proto::KernelCostCoefficients>(file.contents, file.path));
    for (const proto::GemmCoefficients& gemm : in.gemm()) {
      ASSIGN_OR_RETURN(GemmCoefficients parsed, FromProto(gemm),
                       _ << file.path << ": gemm " << gemm.dtype());
      auto entry = MakeEntry(in, gemm.fit(), std::move(parsed), gemm.dtype());
      entry.own_only = gemm.own_only();
      tables.OfType(gemm.dtype()).gemm.Add(std::move(entry));
    }
    for (const proto::AttentionCoefficients& attention : in.attention()) {
      ASSIGN_OR_RETURN(AttentionCoefficients parsed, FromProto(attention),
                       _ << file.path << ": attention " << attention.dtype());
      auto entry = MakeEntry(in, attention.fit(), parsed);
      entry.own_only = attention.own_only();
      tables.OfType(attention.dtype()).attention.Add(std::move(entry));
    }
    for (const proto::ConvolutionCoefficients& convolution : in.convolution()) {
      ASSIGN_OR_RETURN(ConvolutionCoefficients parsed, FromProto(convolution),
                       _ << file.path << ": convolution " << convolution.dtype());
      tables.OfType(convolution.dtype())
          .convolution.Add(MakeEntry(in, convolution.fit(), parsed, convolution.dtype()));
    }
    if (in.has_memory()) {
      ASSIGN_OR_RETURN(MemoryCoefficients parsed, FromProto(in.memory()),
                       _ << file.path << ": memory");
      auto entry = MakeEntry(in, in.memory().fit(), parsed);
      entry.own_only = in.memory().own_only();
      tables.memory_.Add(std::move(entry));
    }
    if (in.has_roofline()) {
      const proto::Fit& fit = in.roofline().fit();
      ASSIGN_OR_RETURN(RooflineCoefficients parsed, FromProto(in.roofline()),
                       _ << file.path << ": roofline");
      tables.roofline_ = MakeEntry(in, fit, parsed);
      tables.roofline_.provenance = {
          Knowledge::kAnalytic,
          absl::StrCat("roofline with sustained fractions, ", fit.data(), ", ", fit.date())};
      has_roofline = true;
    }
    if (in.has_extrapolated_gemm_sigma()) gemm_sigma = in.extrapolated_gemm_sigma();
    if (in.has_extrapolated_attention_sigma()) attention_sigma = in.extrapolated_attention_sigma();
    if (in.has_extrapolated_convolution_sigma()) {
      convolution_sigma = in.extrapolated_convolution_sigma();
    }
    if (in.has_power_slope()) tables.power_slope_ = in.power_slope();
    if (in.has_extrapolated_memory_sigma()) memory_sigma = in.extrapolated_memory_sigma();
  }
  if (!has_roofline) {
    return absl::InvalidArgumentError(
        "no file has `roofline`, which prices what nothing else does. `plancast calibrate` "
        "writes it to generic.textproto.");
  }
  for (ByType& type : tables.types_) {
    type.gemm.Finish(absl::StrCat("gemm tile model ", type.dtype), gemm_sigma,
                     /*of_one_maker=*/type.dtype != "fp32",
                     [&](const auto& members, const auto& everyone, double density) {
                       return GemmMedians(members, everyone, density, tables.power_slope_);
                     });
    type.attention.Finish(absl::StrCat("flash attention model ", type.dtype), attention_sigma,
                          /*of_one_maker=*/false,
                          [](const auto& members, auto&&...) { return AttentionMedians(members); });
    type.convolution.Finish(
        absl::StrCat("convolution factors ", type.dtype), convolution_sigma, /*of_one_maker=*/false,
        [](const auto& members, auto&&...) { return ConvolutionMedians(members); });
  }
  tables.memory_.Finish("memory bandwidth model", memory_sigma, /*of_one_maker=*/false,
                        [](const auto& members, auto&&...) { return MemoryMedians(members); });
  return tables;
}

double CoefficientTables::PowerScale(const CoefficientEntry<GemmCoefficients>& entry,
                                     absl::string_view dtype, const DeviceType& device,
                                     double draw) const {
  const double density = PowerDensity(device);
  if (entry.gpu == device.name || density <= 0 || entry.power_density <= 0) return 1;
  // The same chip on a board that may draw less.
  const double power = entry.power_density / density;
  if (power < 1 && !entry.gpu.empty()) {
    const auto kept = PowerCaps::Shipped().Kept(entry.gpu, dtype, power / draw);
    if (kept.has_value()) return *kept;
  }
  // Never faster than the largest fraction of peak that any GPU sustains.
  return std::min(Kept(power_slope_, density - entry.power_density),
                  1 / entry.coefficients.mma_fraction);
}

const CoefficientTables& CoefficientTables::Shipped() {
  static const CoefficientTables* const tables = [] {
    absl::StatusOr<CoefficientTables> parsed = Parse(CoefficientsData());
    PLANCAST_CHECK_OK(parsed);
    return new CoefficientTables(*std::move(parsed));
  }();
  return *tables;
}

const CoefficientEntry<GemmCoefficients>* CoefficientTables::FindGemm(
    absl::string_view dtype, const DeviceType& device) const {
  const ByType* type = FindType(dtype);
  return type == nullptr ? nullptr
                         : type->gemm.Find(device.name, device.sms, SpeedGrade(device, dtype));
}

const CoefficientEntry<AttentionCoefficients>* CoefficientTables::FindAttention(
    absl::string_view dtype, const DeviceType& device) const {
  const ByType* type = FindType(dtype);
  return type == nullptr ? nullptr
                         : type->attention.Find(device.name, device.sms, SpeedGrade(device, dtype));
}

const CoefficientEntry<ConvolutionCoefficients>* CoefficientTables::FindConvolution(
    absl::string_view dtype, const DeviceType& device) const {
  const ByType* type = FindType(dtype);
  return type == nullptr
             ? nullptr
             : type->convolution.Find(device.name, device.sms, SpeedGrade(device, dtype));
}

const CoefficientEntry<MemoryCoefficients>* CoefficientTables::FindMemory(
    const DeviceType& device) const {
  return memory_.Find(device.name, device.sms, SpeedGrade(device));
}

}  // namespace plancast
