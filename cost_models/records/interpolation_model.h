#ifndef PLANCAST_COST_MODELS_RECORDS_INTERPOLATION_MODEL_H_
#define PLANCAST_COST_MODELS_RECORDS_INTERPOLATION_MODEL_H_

#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "cost_models/kernel_cost.h"
#include "cost_models/records/correction_field.h"
#include "cost_models/records/record_set.h"

namespace plancast {

// Answers kernels near measured ones (same GPU, op, type and layout; another
// shape, or a fused epilogue): the base model's time times what the records say
// that it is off by there. Far from them it is the base model, continuously;
// farther still it does not answer.
//
// Errors blend alike: near, that of records left out of the fit in turn; far,
// the base model's. Devices of one name must be equal for as long as the model
// lives. Thread-safe.
class InterpolationModel : public KernelCostModel {
 public:
  InterpolationModel(std::shared_ptr<const RecordSet> records,
                     std::shared_ptr<const KernelCostModel> base)
      : records_(std::move(records)), base_(std::move(base)) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;

 private:
  const CorrectionField& FieldOf(const MeasuredGroup& group, const DeviceType& device) const;

  std::shared_ptr<const RecordSet> records_;
  std::shared_ptr<const KernelCostModel> base_;
  mutable std::shared_mutex mutex_;
  // Fitted when a group is first asked for on a device; under mutex_.
  mutable absl::node_hash_map<std::pair<const MeasuredGroup*, std::string>, CorrectionField>
      fields_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_INTERPOLATION_MODEL_H_
