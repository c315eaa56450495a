#include "cost_models/datasheet_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cost_models/matmul_unit.h"

namespace plancast {

std::optional<KernelCost> DatasheetModel::Estimate(const KernelSpec& kernel,
                                                   const DeviceType& device) const {
  const bool multiplies = kernel.family == KernelFamily::kGemm ||
                          kernel.family == KernelFamily::kAttention ||
                          kernel.family == KernelFamily::kConvolution;
  const double peak =
      multiplies ? MatmulUnitFor(device, kernel.dtype).peak_flops : device.fp32_flops;
  KernelCost cost;
  cost.hbm_bytes = kernel.read_bytes + kernel.write_bytes;
  const double compute = peak > 0 ? kernel.flops / peak : 0;
  const double memory =
      device.memory_bytes_per_s > 0 ? cost.hbm_bytes / device.memory_bytes_per_s : 0;
  cost.seconds_alone = std::max(compute, memory);
  cost.provenance.source = "data sheet";
  cost.factor = absl::StrCat(device.name, "/data sheet");
  return cost;
}

}  // namespace plancast
