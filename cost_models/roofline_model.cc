#include "cost_models/roofline_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cost_models/matmul_unit.h"

namespace plancast {

std::optional<KernelCost> RooflineModel::Estimate(const KernelSpec& kernel,
                                                  const DeviceType& device) const {
  const CoefficientEntry<RooflineCoefficients>& entry = tables_.roofline();
  const RooflineCoefficients& c = entry.coefficients;
  double peak = MatmulUnitFor(device, kernel.dtype).peak_flops;
  double bandwidth = device.memory_bytes_per_s;

  KernelCost cost;
  cost.hbm_bytes = kernel.read_bytes + kernel.write_bytes;
  double compute = peak > 0 ? kernel.flops / (peak * c.compute_fraction) : 0;
  double memory = bandwidth > 0 ? cost.hbm_bytes / (bandwidth * c.memory_fraction) : 0;
  cost.seconds_alone = c.floor_s * std::max(kernel.launches, 1) + std::max(compute, memory);
  cost.provenance = entry.provenance;
  cost.factor = absl::StrCat(device.name, "/roofline");
  cost.factor_sigma = entry.factor_sigma;
  cost.sigma = entry.sigma;
  return cost;
}

}  // namespace plancast
