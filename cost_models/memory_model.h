#ifndef PLANCAST_COST_MODELS_MEMORY_MODEL_H_
#define PLANCAST_COST_MODELS_MEMORY_MODEL_H_

#include <optional>

#include "cost_models/coefficient_tables.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

// Seconds of a kernel bound by memory; the device's bandwidth is positive.
double TimeOfMemory(const KernelSpec& kernel, const MemoryCoefficients& coefficients,
                    const DeviceType& device);

// Prices kernels bound by memory (kMemory, kOptimizer): a floor per launch plus
// bytes over the sustained bandwidth. Nothing is assumed to stay in the L2
// cache: in a training step other kernels' data has replaced it.
class MemoryModel : public KernelCostModel {
 public:
  // `tables` must outlive the model.
  explicit MemoryModel(const CoefficientTables& tables) : tables_(tables) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;

 private:
  const CoefficientTables& tables_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_MEMORY_MODEL_H_
