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
  o.vocab_parallel = *kVocabParallelNames.Find(*form.vocab_parallel);
  return absl::OkStatus();
}

}  // namespace plancast
