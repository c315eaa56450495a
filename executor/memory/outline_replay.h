#ifndef PLANCAST_EXECUTOR_MEMORY_OUTLINE_REPLAY_H_
#define PLANCAST_EXECUTOR_MEMORY_OUTLINE_REPLAY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "executor/memory/block_profile.h"
#include "executor/memory/peak.h"
#include "graph/execution/program_outline.h"

namespace plancast {

// The memory of a part of an outline: like a block, it only adds to what is there.
struct PartProfile {
  Watermark live, small_pool, large_pool;
  int64_t lowest = 0;   // of live memory after any of its instances
  int64_t largest = 0;  // allocation
};

// The peak of an outline as FindPeak's of the program; all but its place. `profiles`: of
// the blocks that its instances number; `parts` is filled.
Peak FindPeak(const ProgramOutline& outline, absl::Span<const BlockProfile* const> profiles,
              std::vector<PartProfile>* parts);

// Whether what would come again in a program of more micro-batches leaves as much memory of the
// device, of each pool and of the host as it finds: then the peaks of both are the same.
bool LeavesAsMuch(const ProgramOutline& outline, absl::Span<const BlockProfile* const> profiles);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_OUTLINE_REPLAY_H_
