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
    Entry entry{kernel.name(), -1, 1, 1};
    if (kernel.has_next()) {
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
    if (!proto.kernel(i).has_next()) continue;
    const int next = kernels.Find(proto.kernel(i).next());
    // What took another's place stands behind it, so there is no circle.
    if (next <= i) {
      return Wrong(what, "the next of `", proto.kernel(i).name(), "` is `", proto.kernel(i).next(),
                   "`; it has to be a kernel further down in the file.");
    }
    kernels.entries_[i].next = next;
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
  if (library.empty() || measured.empty()) return 1;
  double factor = 1;
  for (int at = Find(library); at >= 0; at = entries_[at].next) {
    if (entries_[at].name == measured) return factor;
    factor *= backward ? entries_[at].backward : entries_[at].forward;
  }
  return 1;
}

}  // namespace plancast
