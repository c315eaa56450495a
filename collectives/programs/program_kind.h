#ifndef PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_KIND_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_KIND_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace plancast {

// What a chunk program does; wider than CollectiveKind, whose convention for
// bytes it follows (gather and scatter: the root's whole buffer; reduce: the
// buffer). kCustom has no post-condition of its own.
enum class ProgramKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSendRecv,
  kCustom,
};

// all_reduce, or one of reduce_scatter and all_gather, which are it one after the other.
bool IsAllReduceOrHalf(ProgramKind kind);
absl::string_view ProgramKindName(ProgramKind kind);  // `all_reduce`, ...

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_KIND_H_
