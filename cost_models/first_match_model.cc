#include "cost_models/kernel_cost.h"

namespace plancast {

std::optional<KernelCost> FirstMatchModel::Estimate(const KernelSpec& kernel,
                                                    const DeviceType& device) const {
  for (const auto& model : chain_) {
    if (std::optional<KernelCost> cost = model->Estimate(kernel, device)) return cost;
  }
  return std::nullopt;
}

}  // namespace plancast
