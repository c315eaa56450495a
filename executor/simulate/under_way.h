#ifndef PLANCAST_EXECUTOR_SIMULATE_UNDER_WAY_H_
#define PLANCAST_EXECUTOR_SIMULATE_UNDER_WAY_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "executor/sharing/fluid.h"
#include "executor/simulate/copy_outcome.h"
#include "executor/simulate/lane.h"
#include "executor/simulate/outcome_cache.h"

// What a simulation keeps of all that has begun and is not over; see Simulator.
namespace plancast {
namespace under_way {

// Members of a communication that have come so far.
struct Meeting {
  int32_t last = -1;  // lane that came last; others are chained behind
  int32_t arrived = 0;
};

// Kernels of a copy that follow one another in a lane, from the first task that
// is not over.
struct Chain {
  int32_t end_rank = 0;
  int32_t rank = 0;             // the kernel under way when last looked at,
  int64_t since = 0, left = 0;  // and what was left of it then
  bool slow = false;
  int64_t end = 0;
};

// A communication under way, by the lane that came to it last.
struct Flight {
  int32_t group = 0;
  int64_t work_bytes = 0;
  int64_t transfer_at = 0;   // when its transfer begins, or goes on after a run of copies,
  int128 work_left = 0;      // and what is left of it then
  bool flows = false;        // it has begun, and others change its rate:
  int32_t activity = -1;     // in the fluid, of links that others load too; or, if
  Fluid::Progress progress;  // kernels alone do, what is left of it
  bool slow = false;         // by kernels
  int32_t busy = 0;          // members that run kernels
};

// Whether copies of a block can run at once on an entity, and what as.
struct Whole {
  static constexpr int32_t kUnasked = -2, kNeverWhole = -1;
  int32_t variant = kUnasked;
  int32_t rivals_begin = 0, rivals_end = 0;  // into rivals_
};

// A block at certain costs.
struct Variant {
  std::vector<int64_t> key;
  CopyCosts costs;
  std::vector<int32_t> groups;  // per task: of a communication
  int32_t block = 0;
};

// Copies of an instance that an entity runs at once.
struct CopyRun {
  bool active = false;
  int32_t instance = 0, first_copy = 0, copies = 0;
  bool partial = false;    // of a copy that lanes have begun
  StreamMask streams = 0;  // that have not gone on yet
  int64_t refused = -1;    // the place where a run last came to nothing
  int32_t variant = 0;
  int64_t begin = 0, period = 0;
  CopyOutcome* outcome = nullptr;
  CopyConditions conditions;

  // The copy under way, of those left.
  int32_t CopyAt(int64_t now) const {
    return period == 0
               ? 0
               : static_cast<int32_t>(std::min<int64_t>((now - begin) / period, copies - 1));
  }
  int64_t end() const { return begin + (copies - 1) * period + outcome->end; }
};

struct Entity {
  int32_t comms = 0;       // under way, outside its run
  int32_t open = 0;        // of those, with an end not known yet
  int64_t over_at = 0;     // when the others are over
  int32_t flows = 0;       // transfers that kernels slow down
  bool busy = false;       // known to those: a kernel runs
  bool doubted = false;    // whether it is has to be looked at
  bool listed = false;     // in work_
  bool disturbed = false;  // its run has to be looked at
  StreamMask ready = 0;    // streams to run
  CopyRun run;
};

// The host's clock less all launches of the copy.
struct Clock {
  bool known = false;
  int64_t zero = 0;
};

// What a communication is made of, picoseconds and bytes.
struct Transfer {
  int64_t delay = 0, work_bytes = 0, alone = 0;
};

// A task that an entity's host has waited for, and when it was over. The host's clock goes
// on from the last; instance -1: from the beginning.
struct HostSync {
  int32_t entity = 0;
  bool first = false;  // the last before all that lanes are at
  TaskRef task;
  int64_t end = 0;
};

// All that goes on at a point in time, times from then; and where it does.
struct State {
  int64_t now = 0;
  std::vector<int64_t> exact;
  std::vector<std::pair<int32_t, int32_t>> places;  // entity, instance
  std::vector<HostSync> syncs;                      // entity by entity
};

// Instances of an entity that lanes are at, of those that go on.
struct Front {
  int32_t first = 0, last = 0;
};

}  // namespace under_way
}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_UNDER_WAY_H_
