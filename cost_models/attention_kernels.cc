#include "cost_models/attention_kernels.h"

#include <algorithm>
#include <optional>
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
    const bool known = std::any_of(
        kernels.entries_.begin(), kernels.entries_.end(), [&kernel](const Entry& other) {
          return other.name == kernel.name() && other.architecture == kernel.architecture();
        });
    if (kernel.name().empty() || known) {
      return Wrong(what, "`", kernel.name(), "` has to be a name that no other kernel has.");
    }
    if (kernel.has_next() && kernel.has_training()) {
      return Wrong(what, "`", kernel.name(), "` has a next kernel or one that trains, not both.");
    }
    Entry entry;
    entry.name = kernel.name();
    entry.architecture = kernel.architecture();
    entry.serves = kernel.has_training();
    entry.follows = entry.serves ? kernel.training() : kernel.next();
    if (!entry.follows.empty()) {
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
  // What took another's place stands behind it, so there is no circle.
  for (size_t i = 0; i < kernels.entries_.size(); ++i) {
    const Entry& entry = kernels.entries_[i];
    if (entry.follows.empty()) continue;
    const auto named = [&entry](const Entry& other) { return other.name == entry.follows; };
    const auto here = kernels.entries_.begin() + i + 1;
    if (std::any_of(kernels.entries_.begin(), here, named) ||
        std::none_of(here, kernels.entries_.end(), named)) {
      return Wrong(what, entry.serves ? "what trains for `" : "the next of `", entry.name, "` is `",
                   entry.follows, "`; it has to be a kernel further down in the file.");
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

bool AttentionKernels::Knows(absl::string_view library) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [library](const Entry& entry) { return entry.name == library; });
}

const AttentionKernels::Entry* AttentionKernels::Find(absl::string_view name,
                                                      absl::string_view architecture) const {
  const Entry* of_all = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.name != name) continue;
    if (entry.architecture == architecture) return &entry;
    if (entry.architecture.empty()) of_all = &entry;
  }
  return of_all;
}

std::optional<double> AttentionKernels::Way(const Entry* from, const Entry& to,
                                            absl::string_view architecture, bool backward) const {
  double factor = 1;
  for (; from != nullptr; from = Find(from->follows, architecture)) {
    if (from == &to) return factor;
    factor *= from->Factor(backward);
  }
  return std::nullopt;
}

double AttentionKernels::Slowdown(absl::string_view library, absl::string_view measured,
                                  absl::string_view architecture, bool backward) const {
  const Entry* trains = library == kAsMeasured ? nullptr : Find(measured, architecture);
  if (trains == nullptr) return 1;
  double gained = 1;
  if (trains->serves) {
    gained = 1 / trains->Factor(backward);
    trains = Find(trains->follows, architecture);
  }
  const Entry* of_library = Find(library, architecture);
  if (of_library == nullptr || trains == nullptr) return gained;
  if (const auto way = Way(of_library, *trains, architecture, backward)) return gained * *way;
  const bool own = !architecture.empty() && of_library->architecture == architecture;
  const auto back = own ? Way(trains, *of_library, architecture, backward) : std::nullopt;
  return back.has_value() ? gained / *back : gained;
}

}  // namespace plancast
