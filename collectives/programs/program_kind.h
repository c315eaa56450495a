#ifndef PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_KIND_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_KIND_H_

#include <cstdint>

#include "base/enum_names.h"

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
inline constexpr auto kProgramKindNames =
    NamesOf<ProgramKind>("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                         "reduce", "gather", "scatter", "send_recv", "custom");

// all_reduce, or one of reduce_scatter and all_gather, which are it one after the other.
bool IsAllReduceOrHalf(ProgramKind kind);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_PROGRAM_KIND_H_
