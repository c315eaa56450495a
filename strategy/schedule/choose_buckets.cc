#include "strategy/schedule/choose_buckets.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "strategy/byte_size.h"

namespace plancast {

absl::Status ChooseBuckets(const ShortForm& form, const SoftwareProfile& profile,
                           PlanOptions* options, std::vector<std::string>* notes) {
  PlanOptions& o = *options;
  const SoftwareProfile::DataParallel& usual = profile.data_parallel;
  o.bucket_bytes = form.bucket_bytes.value_or(usual.bucket_bytes);
  if (form.first_bucket_bytes.has_value() && usual.first_bucket_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "first_bucket=", PrintByteSize(*form.first_bucket_bytes), ": in profile ", profile.name,
        " the first bucket of gradients is as large as the others. Say `bucket`, or take a ",
        "profile in which it has a size of its own, such as ddp."));
  }
  // A bucket of one's own is not begun with a smaller one (bucket_bytes_cap_default of
  // torch/nn/parallel/distributed.py).
  const int64_t first = form.first_bucket_bytes.value_or(
      form.bucket_bytes.has_value() ? 0 : usual.first_bucket_bytes);
  o.first_bucket_bytes = first < o.bucket_bytes ? first : 0;
  const bool early = o.overlap.count(Overlap::kGrad) > 0 || o.optimizer == StepTime::kInBackward;
  if (notes != nullptr && form.bucket_bytes.has_value() && !early &&
      o.overlap.count(Overlap::kParam) == 0) {
    notes->push_back(absl::StrCat("bucket=", PrintByteSize(*form.bucket_bytes),
                                  " has no effect without overlap=grad: gradients are reduced at ",
                                  "once, behind the last backward pass"));
  }
  return absl::OkStatus();
}

}  // namespace plancast
