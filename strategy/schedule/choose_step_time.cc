#include "strategy/schedule/choose_step_time.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace plancast {
namespace {

// That gradients come bucket by bucket, and are whole then.
absl::Status CheckInBackward(const PlanOptions& options) {
  if (options.micro_batches > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer=in-backward updates weights as soon as one backward pass has made their ",
        "gradients, and the plan adds those of ", options.micro_batches,
        " micro-batches. Use optimizer=at-end, or a larger mb."));
  }
  if (options.dp * options.cp > 1 && options.overlap.count(Overlap::kGrad) == 0) {
    return absl::InvalidArgumentError(
        "optimizer=in-backward updates buckets of gradients that are reduced during the backward "
        "pass, and the plan reduces them behind it. Add overlap=grad, or use optimizer=at-end.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseStepTime(const ShortForm& form, const SoftwareProfile& profile,
                            PlanOptions* options, std::vector<std::string>* notes) {
  if (profile.update.type == OptimizerType::kMuon &&
      options->offload.count(Offload::kOptimizer) > 0) {
    return absl::InvalidArgumentError(
        "offload=optimizer updates weights on the host, and muon multiplies matrices, which takes "
        "the device. Use another optimizer, or leave `optimizer` out of `offload`.");
  }
  if (!form.optimizer.has_value()) return absl::OkStatus();
  const StepTime said = *kStepTimeNames.Find(*form.optimizer);
  const auto note = [&](absl::string_view effect) {
    if (notes != nullptr) notes->push_back(absl::StrCat("optimizer=", *form.optimizer, effect));
  };
  if (said == StepTime::kInBackward) {
    const absl::Status checked = CheckInBackward(*options);
    if (!checked.ok()) return checked;
    if (profile.update.type == OptimizerType::kMuon) {
      return absl::InvalidArgumentError(
          "optimizer=in-backward updates buckets of gradients, and muon whole matrices. Use "
          "optimizer=at-end.");
    }
    if (profile.update.finds_norm()) note(" clips no gradients: their norm comes too late");
  } else if (said == StepTime::kPostValidated && options->pp == 1) {
    note(" has no effect without a pipeline");
    return absl::OkStatus();
  }
  options->optimizer = said;
  return absl::OkStatus();
}

}  // namespace plancast
