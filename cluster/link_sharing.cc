#include "cluster/link_sharing.h"

#include "absl/strings/str_cat.h"

namespace plancast {

absl::StatusOr<LinkSharing> ParseLinkSharing(absl::string_view name) {
  if (name == "max_min") return LinkSharing::kMaxMin;
  if (name == "priority") return LinkSharing::kPriority;
  return absl::InvalidArgumentError(
      absl::StrCat("link_sharing is `", name, "`; it must be `max_min` or `priority`."));
}

}  // namespace plancast
