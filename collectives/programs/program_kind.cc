#include "collectives/programs/program_kind.h"

namespace plancast {

bool IsAllReduceOrHalf(ProgramKind kind) {
  return kind == ProgramKind::kAllReduce || kind == ProgramKind::kReduceScatter ||
         kind == ProgramKind::kAllGather;
}

}  // namespace plancast
