#include "cost_models/records/record_model.h"

#include "absl/strings/str_cat.h"

namespace plancast {

std::optional<KernelCost> RecordModel::Estimate(const KernelSpec& kernel,
                                                const DeviceType& device) const {
  const MeasuredKernel* measured = records_->Find(kernel, device.name);
  if (measured == nullptr) return std::nullopt;
  KernelCost cost = base_->Estimate(kernel, device).value_or(KernelCost());
  cost.seconds_alone = measured->seconds;
  cost.provenance = {Knowledge::kMeasured, absl::StrCat("record: ", measured->source)};
  cost.factor = absl::StrCat(device.name, "/records");
  cost.factor_sigma = records_->SharedSigma(device.name);
  cost.sigma = measured->sigma;
  return cost;
}

}  // namespace plancast
