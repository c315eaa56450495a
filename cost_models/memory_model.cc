#include "cost_models/memory_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plancast {

std::optional<KernelCost> MemoryModel::Estimate(const KernelSpec& kernel,
                                                const DeviceType& device) const {
  bool is_memory_bound =
      kernel.family == KernelFamily::kMemory || kernel.family == KernelFamily::kOptimizer;
  if (!is_memory_bound || device.memory_bytes_per_s <= 0) return std::nullopt;
  const auto* entry = tables_.FindMemory(device);
  if (entry == nullptr) return std::nullopt;
  const MemoryCoefficients& c = entry->coefficients;

  KernelCost cost;
  cost.hbm_bytes = kernel.read_bytes + kernel.write_bytes;
  cost.seconds_alone = c.floor_s * std::max(kernel.launches, 1) +
                       cost.hbm_bytes / (device.memory_bytes_per_s * c.memory_fraction);
  // Matters only for kernels that were mistaken for memory bound.
  if (device.fp32_flops > 0) {
    cost.seconds_alone = std::max(cost.seconds_alone, kernel.flops / device.fp32_flops);
  }
  cost.provenance = entry->provenance;
  cost.factor = absl::StrCat(entry->gpu.empty() ? device.name : entry->gpu, "/memory");
  cost.factor_sigma = entry->factor_sigma;
  cost.sigma = entry->sigma;
  return cost;
}

}  // namespace plancast
