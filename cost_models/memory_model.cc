#include "cost_models/memory_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// Random numbers of kernels that drop out come from Philox 4x32-10 (Salmon et al.,
// SC'11): for four of them ten rounds of two wide products, at half rate, and of two
// exclusive ors and two additions, so 20 instructions each; to compare, to scale and to
// change types takes eight more.
constexpr double kInstructionsPerRandomNumber = 28;
// Integer lanes of an SM, Volta to Hopper.
constexpr double kIntegerLanes = 64;

double DrawingSeconds(const KernelSpec& kernel, const DeviceType& device) {
  const double rate = device.sms * kIntegerLanes * device.boost_mhz * 1e6;
  return rate > 0 ? kernel.random_numbers * kInstructionsPerRandomNumber / rate : 0;
}

}  // namespace

double TimeOfMemory(const KernelSpec& kernel, const MemoryCoefficients& c,
                    const DeviceType& device) {
  const double moving =
      (kernel.read_bytes + kernel.write_bytes) / (device.memory_bytes_per_s * c.memory_fraction);
  const double drawing = DrawingSeconds(kernel, device);
  const double seconds = c.floor_s * std::max(kernel.launches, 1) +
                         std::cbrt(moving * moving * moving + drawing * drawing * drawing);
  // Matters only for kernels that were mistaken for memory bound.
  return device.fp32_flops > 0 ? std::max(seconds, kernel.flops / device.fp32_flops) : seconds;
}

std::optional<KernelCost> MemoryModel::Estimate(const KernelSpec& kernel,
                                                const DeviceType& device) const {
  bool is_memory_bound =
      kernel.family == KernelFamily::kMemory || kernel.family == KernelFamily::kOptimizer;
  if (!is_memory_bound || device.memory_bytes_per_s <= 0) return std::nullopt;
  const auto* entry = tables_.FindMemory(device);
  if (entry == nullptr) return std::nullopt;

  KernelCost cost;
  cost.hbm_bytes = kernel.read_bytes + kernel.write_bytes;
  cost.seconds_alone = TimeOfMemory(kernel, entry->coefficients, device);
  cost.provenance = entry->provenance;
  cost.factor = absl::StrCat(entry->gpu.empty() ? device.name : entry->gpu, "/memory");
  cost.factor_sigma = entry->factor_sigma;
  cost.sigma = entry->sigma;
  return cost;
}

}  // namespace plancast
