#ifndef PLANCAST_GRAPH_COLLECTIVE_KIND_H_
#define PLANCAST_GRAPH_COLLECTIVE_KIND_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace plancast {

// Bytes of a collective follow nccl-tests: all_reduce = the buffer; all_gather
// = total output; reduce_scatter = total input; all_to_all = total of one
// rank; permute = send_recv = bytes one rank sends; broadcast = the buffer.
enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kPermute,
  kSendRecv,
  kBroadcast,
};

absl::string_view CollectiveKindName(CollectiveKind kind);  // `all_reduce`, ...

}  // namespace plancast

#endif  // PLANCAST_GRAPH_COLLECTIVE_KIND_H_
