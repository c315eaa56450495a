#include "cost_models/kernel_cost.h"

namespace plancast {

std::optional<KernelCost> FirstMatchModel::Estimate(const KernelSpec& kernel,
                                                    const DeviceType& device) const {
  for (const auto& model : chain_) {
    std::optional<KernelCost> cost = model->Estimate(kernel, device);
    if (!cost.has_value()) continue;
    cost->seconds_alone *= kernel.time_scale;
    return cost;
  }
  return std::nullopt;
}

}  // namespace plancast
