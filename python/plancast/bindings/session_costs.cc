#include "python/plancast/bindings/session_costs.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cost_models/caching_model.h"
#include "cost_models/records/model_with_records.h"

namespace plancast {
namespace {

// Asks a model of each type of device.
class ByDevice : public KernelCostModel {
 public:
  void Add(const DeviceType& device, std::shared_ptr<const KernelCostModel> model) {
    models_.emplace(device.name, std::move(model));
  }
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override {
    const auto found = models_.find(device.name);
    if (found == models_.end()) return std::nullopt;
    return found->second->Estimate(kernel, device);
  }

 private:
  std::map<std::string, std::shared_ptr<const KernelCostModel>> models_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const KernelCostModel>> SessionCosts::For(
    const Machine& machine) const {
  static const auto* shipped = new std::shared_ptr<const KernelCostModel>(DefaultKernelCostModel());
  if (records_ == nullptr) return *shipped;
  if (!machine.mixed()) return ForDevice(machine.device());
  auto models = std::make_shared<ByDevice>();
  for (int s = 0; s < machine.num_sections(); ++s) {
    const DeviceType& device = machine.section(s).device();
    ASSIGN_OR_RETURN(std::shared_ptr<const KernelCostModel> model, ForDevice(device));
    models->Add(device, std::move(model));
  }
  return std::shared_ptr<const KernelCostModel>(std::move(models));
}

absl::StatusOr<std::shared_ptr<const KernelCostModel>> SessionCosts::ForDevice(
    const DeviceType& device) const {
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
