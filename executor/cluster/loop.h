#ifndef PLANCAST_EXECUTOR_CLUSTER_LOOP_H_
#define PLANCAST_EXECUTOR_CLUSTER_LOOP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/int128.h"
#include "executor/sharing/fluid.h"

namespace plancast {

// One phase of an iteration: computes and transfers side by side, and ends when both
// are over.
struct LoopPhase {
  int64_t compute_ps = 0;
  int128 work = 0;  // of the transfer, in 2^-16 bytes a second times ps (Fluid::Progress)
};

// A job as links see it: an iteration after the other, phase by phase. All its flows go
// at one rate, that of the slowest, as those of a ring do: a rate of one byte a second
// loads a link with as many bytes a second as flows cross it.
struct Loop {
  std::vector<LoopPhase> phases;
  std::vector<Fluid::Use> uses;  // of links, ascending; each once
  int64_t weight = 1;
  int32_t priority = 0;     // the lowest goes first
  int64_t alone_level = 1;  // rate over weight with the links to itself, see ActivityKinds

  int64_t AloneQ16() const { return alone_level * weight; }
  int64_t TransferPs(int phase) const {
    return ActivityKinds::Duration(phases[phase].work, AloneQ16());
  }
  int64_t PhasePs(int phase) const;
  // Of an iteration alone.
  int64_t IterationPs() const;
  int64_t CommunicationPs() const;
  int64_t ComputePs() const;
};

// The level of a loop with these uses by itself: of its own limit, bytes a second and
// flow, and of the links.
int64_t AloneLevel(absl::Span<const Fluid::Use> uses, absl::Span<const int64_t> capacities,
                   int64_t weight, int64_t rate_cap_bytes_per_s);

// How far a loop has come.
struct LoopState {
  int32_t phase = 0;
  int64_t compute_left_ps = 0;
  int128 work_left = 0;
  int64_t iterations = 0;  // done

  static LoopState Fresh(const Loop& loop);
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_LOOP_H_
