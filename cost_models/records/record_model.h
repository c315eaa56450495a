#ifndef PLANCAST_COST_MODELS_RECORDS_RECORD_MODEL_H_
#define PLANCAST_COST_MODELS_RECORDS_RECORD_MODEL_H_

#include <memory>
#include <optional>
#include <utility>

#include "cost_models/kernel_cost.h"
#include "cost_models/records/record_set.h"

namespace plancast {

// Answers kernels that were measured on exactly that GPU, with the time as
// stored. What a time does not tell (SMs, memory traffic) is the base model's.
class RecordModel : public KernelCostModel {
 public:
  RecordModel(std::shared_ptr<const RecordSet> records, std::shared_ptr<const KernelCostModel> base)
      : records_(std::move(records)), base_(std::move(base)) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;

 private:
  std::shared_ptr<const RecordSet> records_;
  std::shared_ptr<const KernelCostModel> base_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_RECORD_MODEL_H_
