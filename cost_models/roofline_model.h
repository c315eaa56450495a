#ifndef PLANCAST_COST_MODELS_ROOFLINE_MODEL_H_
#define PLANCAST_COST_MODELS_ROOFLINE_MODEL_H_

#include <optional>

#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

// Prices everything from FLOPs and bytes alone, with fractions of the nominal
// peaks that GPUs usually sustain. Always answers; a rate that the device does
// not state is taken as free.
class RooflineModel : public KernelCostModel {
 public:
  // `tables` must outlive the model.
  explicit RooflineModel(const CoefficientTables& tables) : tables_(tables) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;

 private:
  const CoefficientTables& tables_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_ROOFLINE_MODEL_H_
