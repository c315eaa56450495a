#ifndef PLANCAST_COST_MODELS_DATASHEET_MODEL_H_
#define PLANCAST_COST_MODELS_DATASHEET_MODEL_H_

#include <memory>
#include <optional>

#include "cost_models/kernel_cost.h"

namespace plancast {

// The bound that a data sheet gives: FLOPs at the peak of their unit or bytes at the
// nominal bandwidth of device memory, whichever takes longer, and nothing else. No
// measurement is in it; forecasts by it show what calibration is worth. Answers
// for every kernel.
class DatasheetModel : public KernelCostModel {
 public:
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_DATASHEET_MODEL_H_
