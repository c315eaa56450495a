#ifndef PLANCAST_COST_MODELS_MEMORY_MODEL_H_
#define PLANCAST_COST_MODELS_MEMORY_MODEL_H_

#include <optional>

#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

// Bytes that a kernel moves: of rows that are gone over again, those that the L2 cache cannot
// hold for all rows in flight are read once more.
double TrafficOf(const KernelSpec& kernel, const DeviceType& device);

// Seconds of a kernel bound by memory; the device's bandwidth is positive.
double TimeOfMemory(const KernelSpec& kernel, const MemoryCoefficients& coefficients,
                    const DeviceType& device);

// Prices kernels bound by memory (kMemory, kOptimizer): a floor per launch plus
// bytes over the sustained bandwidth. Nothing is assumed to be in the L2 cache
// when a kernel starts: in a training step other kernels' data has replaced it.
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
