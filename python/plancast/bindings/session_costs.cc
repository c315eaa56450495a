#include "python/plancast/bindings/session_costs.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cost_models/caching_model.h"
#include "cost_models/records/model_with_records.h"

namespace plancast {

absl::StatusOr<std::shared_ptr<const KernelCostModel>> SessionCosts::For(
    const Machine& machine) const {
  static const auto* shipped = new std::shared_ptr<const KernelCostModel>(DefaultKernelCostModel());
  if (records_ == nullptr) return *shipped;
  const DeviceType& device = machine.device();
  // Models take devices of one name to be equal.
  const std::string key = absl::StrCat(
      device.name, " ", device.sms, " ", device.memory_bytes_per_s, " ", device.fp32_flops, " ",
      device.tf32_flops, " ", device.fp16_flops, " ", device.bf16_flops, " ", device.fp8_flops, " ",
      device.fp4_flops, " ", device.boost_mhz);
  std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(const int64_t generation, records_->generation());
  Loaded& loaded = by_machine_[key];
  if (loaded.generation != generation) {
    RecordFilter filter = filter_;
    filter.gpu = device.name;
    ASSIGN_OR_RETURN(std::shared_ptr<const KernelCostModel> model,
                     KernelCostModelWith(*records_, filter));
    loaded = {generation, std::make_shared<CachingModel>(std::move(model))};
  }
  return loaded.model;
}

}  // namespace plancast
