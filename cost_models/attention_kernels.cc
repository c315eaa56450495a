#include "cost_models/attention_kernels.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/embedded_file.h"
#include "base/status_macros.h"
#include "cost_models/attention_kernels_data.h"
#include "proto/kernel_cost.pb.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

template <typename... Parts>
absl::Status Wrong(absl::string_view what, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", parts...));
}

}  // namespace

absl::StatusOr<AttentionKernels> AttentionKernels::Parse(absl::string_view text,
                                                         absl::string_view what) {
  ASSIGN_OR_RETURN(const auto proto, ParseTextProto<proto::AttentionKernels>(text, what));
  AttentionKernels kernels;
  for (const proto::AttentionKernel& kernel : proto.kernel()) {
    if (kernel.name().empty() || kernels.Knows(kernel.name())) {
      return Wrong(what, "`", kernel.name(), "` has to be a name that no other kernel has.");
    }
    if (kernel.has_next() && kernel.has_training()) {
      return Wrong(what, "`", kernel.name(), "` has a next kernel or one that trains, not both.");
    }
    Entry entry;
    entry.name = kernel.name();
    if (kernel.has_next() || kernel.has_training()) {
      entry.forward = kernel.forward();
      entry.backward = kernel.backward();
    }
    for (const double factor : {entry.forward, entry.backward}) {
      if (factor >= 1 && factor <= 100) continue;
      return Wrong(what, "`", kernel.name(), "` takes ", factor,
                   " times as long as the next one; it has to be from 1 to 100.");
    }
    kernels.entries_.push_back(std::move(entry));
  }
  for (int i = 0; i < proto.kernel_size(); ++i) {
    const proto::AttentionKernel& kernel = proto.kernel(i);
    for (const bool trains : {false, true}) {
      if (!(trains ? kernel.has_training() : kernel.has_next())) continue;
      const std::string& name = trains ? kernel.training() : kernel.next();
      const int other = kernels.Find(name);
      // What took another's place stands behind it, so there is no circle.
      if (other <= i) {
        return Wrong(what, trains ? "what trains for `" : "the next of `", kernel.name(), "` is `",
                     name, "`; it has to be a kernel further down in the file.");
      }
      (trains ? kernels.entries_[i].training : kernels.entries_[i].next) = other;
    }
  }
  return kernels;
}

const AttentionKernels& AttentionKernels::Shipped() {
  static const AttentionKernels* const kernels = [] {
    const EmbeddedFile* file = FindByStem(AttentionKernelsData(), "attention_kernels");
    PLANCAST_CHECK(file != nullptr);
    auto parsed = Parse(file->contents, file->path);
    PLANCAST_CHECK_OK(parsed);
    return new AttentionKernels(*std::move(parsed));
  }();
  return *kernels;
}

int AttentionKernels::Find(absl::string_view name) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

double AttentionKernels::Slowdown(absl::string_view library, absl::string_view measured,
                                  bool backward) const {
  const int found = library == kAsMeasured ? -1 : Find(measured);
  if (found < 0) return 1;
  const bool serves = entries_[found].training >= 0;
  const int trains = serves ? entries_[found].training : found;
  const double gained = serves ? 1 / entries_[found].Factor(backward) : 1;
  double factor = gained;
  for (int at = Find(library); at >= 0;) {
    if (at == trains) return factor;
    const Entry& entry = entries_[at];
    factor *= entry.Factor(backward);
    at = entry.training >= 0 ? entry.training : entry.next;
  }
  return gained;
}

}  // namespace plancast
