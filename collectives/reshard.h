#ifndef PLANCAST_COLLECTIVES_RESHARD_H_
#define PLANCAST_COLLECTIVES_RESHARD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "collectives/realise.h"

namespace plancast {

// What one device sends to another, bytes.
struct DeviceFlow {
  int64_t from = 0, to = 0, bytes = 0;
};

// What receivers do among themselves: an all_gather that follows, or a broadcast that goes on
// while they receive; 0 bytes: nothing.
struct AmongReceivers {
  CollectiveKind kind = CollectiveKind::kAllGather;
  GroupPattern group;
  int64_t bytes = 0;
};

// Messages between pairs of devices that begin together, as a batch of sends and receives does,
// and end together, since each goes as fast as its size lets all of them end with the
// slowest. Work is that of the largest message; links that senders share carry the sum of
// what goes over them. Flows from a device to itself take nothing. What receivers do loads no links
// that others see.
absl::StatusOr<RealisedCollective> RealiseReshard(const Machine& machine,
                                                  absl::Span<const DeviceFlow> flows,
                                                  const AmongReceivers& after,
                                                  const CollectivePolicy& policy = {});

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_RESHARD_H_
