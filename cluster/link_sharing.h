#ifndef PLANCAST_CLUSTER_LINK_SHARING_H_
#define PLANCAST_CLUSTER_LINK_SHARING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// How communications share links that are too narrow for all of them.
enum class LinkSharing : uint8_t {
  // Everyone's rate rises alike until a link of theirs is full (RDMA, TCP).
  kMaxMin,
  // Urgent ones first: a class of lower number takes what it can use, max-min
  // among itself; the others share what it leaves (ByteScheduler, P3).
  kPriority,
};

// `max_min`, `priority`.
absl::StatusOr<LinkSharing> ParseLinkSharing(absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_LINK_SHARING_H_
