#include "collectives/programs/program_kind.h"

namespace plancast {

bool IsAllReduceOrHalf(ProgramKind kind) {
  return kind == ProgramKind::kAllReduce || kind == ProgramKind::kReduceScatter ||
         kind == ProgramKind::kAllGather;
}

absl::string_view ProgramKindName(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kAllReduce:
      return "all_reduce";
    case ProgramKind::kAllGather:
      return "all_gather";
    case ProgramKind::kReduceScatter:
      return "reduce_scatter";
    case ProgramKind::kAllToAll:
      return "all_to_all";
    case ProgramKind::kBroadcast:
      return "broadcast";
    case ProgramKind::kReduce:
      return "reduce";
    case ProgramKind::kGather:
      return "gather";
    case ProgramKind::kScatter:
      return "scatter";
    case ProgramKind::kSendRecv:
      return "send_recv";
    case ProgramKind::kCustom:
      return "custom";
  }
  return "?";
}

}  // namespace plancast
