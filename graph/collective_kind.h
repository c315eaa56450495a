#ifndef PLANCAST_GRAPH_COLLECTIVE_KIND_H_
#define PLANCAST_GRAPH_COLLECTIVE_KIND_H_

#include <cstdint>

#include "base/enum_names.h"

namespace plancast {

// Bytes of a collective follow nccl-tests: all_reduce = the buffer; all_gather
// = total output; reduce_scatter = total input; all_to_all = total of one
// rank; permute = send_recv = bytes one rank sends; broadcast = reduce = the buffer; gather =
// scatter = all that the root has in the end or at first; reshard = all that goes from one stage to
// another, by messages between pairs.
//
// Three concern a device and its host's memory. They run over no mesh axis:
// a group is one device. copy_to_host = copy_to_device = the bytes copied;
// host_update = bytes that an optimizer on the host reads and writes there.
enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kPermute,
  kSendRecv,
  kBroadcast,
  kReduce,   // to one member, the root
  kGather,   // of parts, at the root
  kScatter,  // of parts, from the root
  kCopyToHost,
  kCopyToDevice,
  kHostUpdate,
  kReshard,
};
inline constexpr auto kCollectiveKindNames = NamesOf<CollectiveKind>(
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "send_recv", "broadcast",
    "reduce", "gather", "scatter", "copy_to_host", "copy_to_device", "host_update", "reshard");

constexpr bool IsOnHost(CollectiveKind kind) {
  return kind >= CollectiveKind::kCopyToHost && kind <= CollectiveKind::kHostUpdate;
}

}  // namespace plancast

#endif  // PLANCAST_GRAPH_COLLECTIVE_KIND_H_
