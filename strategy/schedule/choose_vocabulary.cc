#include "strategy/schedule/choose_vocabulary.h"

#include "absl/strings/str_cat.h"

namespace plancast {

absl::Status ChooseVocabulary(const ShortForm& form, int64_t vocabulary, PlanOptions* options,
                              std::vector<std::string>* notes) {
  if (!form.vocab_parallel.has_value()) return absl::OkStatus();
  PlanOptions& o = *options;
  const std::string said = absl::StrCat("vocab_parallel=", *form.vocab_parallel);
  if (o.pp == 1) {
    if (notes != nullptr) notes->push_back(absl::StrCat(said, " has no effect with pp=1"));
    return absl::OkStatus();
  }
  if (form.vocab_parallel == "redis") return absl::OkStatus();
  if (vocabulary == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        said, " spreads the vocabulary over the stages, and the model has none. Leave it out."));
  }
  const auto not_yet = [&](absl::string_view what, absl::string_view remedy) {
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: ", what, " with ", said, ". ", remedy));
  };
  if (o.vpp > 1) return not_yet(absl::StrCat("vpp=", o.vpp), "Use vpp=1.");
  if (o.schedule != Schedule::k1f1b) {
    return not_yet(absl::StrCat("schedule=", kScheduleNames[o.schedule]), "Use schedule=1f1b.");
  }
  if (!o.cuts.empty()) return not_yet("`stages`", "Say what stages hold by `layout`.");
  if (o.most_zero() >= 2) return not_yet(absl::StrCat("zero=", o.most_zero()), "Use zero=1.");
  if (!o.offload.empty()) {
    return not_yet("offload", "Leave it out.");
  }
  if (o.sync_each || o.sync_whole_each) return not_yet("sync=each", "Use sync=last.");
  if (o.recompute_joined > 1 || o.unit_layers > 1) {
    return not_yet("layers that are joined", "Leave `uniform` and `unit` out.");
  }
  if (o.optimizer != StepTime::kAtEnd) {
    return not_yet(absl::StrCat("optimizer=", kStepTimeNames[o.optimizer]),
                   "Use optimizer=at-end.");
  }
  o.vocab_parallel = *kVocabParallelNames.Find(*form.vocab_parallel);
  return absl::OkStatus();
}

}  // namespace plancast
