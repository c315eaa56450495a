#ifndef PLANCAST_EXECUTOR_PROFILE_H_
#define PLANCAST_EXECUTOR_PROFILE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "executor/task_index.h"

namespace plancast {

// What a copy of a block finds when its streams come to it: the ends of the tasks
// before it in each stream, of what its gate and in-ports wait for, and the clock
// of the host, after its launches so far.
struct Entry {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min() / 4;
  static constexpr int kGate = kNumStreams, kHost = kNumStreams + 1, kPorts = kNumStreams + 2;
  static constexpr int kMost = 64;

  int64_t origin = kNone;  // the latest of all but the host
  int count = kPorts;
  int64_t values[kMost];

  Entry() { std::fill_n(values, kPorts, kNone); }
  void Set(int input, int64_t value) {
    values[input] = value;
    if (input != kHost && value > origin) origin = value;
  }
};

// What comes next in a stream might begin before others may come, and must not.
struct Follower {
  int stream = 0;
  int64_t earliest = 0;
};

// A copy of a block as it runs when nothing comes between. Times are relative to the origin of its
// entry.
//
// It is the same for all entries whose inputs keep within the limits, exactly at
// them if `exact` says so: then every task starts as early, on a task of the
// copy if it did.
struct Profile {
  std::vector<int64_t> limits;  // per input of the entry
  uint64_t exact = 0;           // bit mask of inputs
  // From one copy to the next, if the next finds the same; 0: it does not.
  int64_t period = 0;
  int64_t first_kernel = 0, last_kernel = 0;  // kernels run in between
  int64_t undisturbed = 0;                    // nothing may come between before
  int64_t last_comm = 0;                      // end of its last communication
  int64_t host_ps = 0;                        // that the launches of a copy take
  std::vector<Follower> followers;
  int64_t times = 0;  // into SimTrace::times

  bool Fits(const Entry& entry) const {
    for (int i = 0; i < entry.count; ++i) {
      const int64_t value = entry.values[i] - entry.origin;
      if (value > limits[i] || ((exact >> i & 1) != 0 && value != limits[i])) return false;
    }
    return true;
  }
  // How many copies one after another keep within the limit of the host.
  int64_t CopiesForHost(const Entry& entry) const;
};

// What a copy is made of, beside its block.
struct CopyCosts {
  // Per task: what a kernel or a communication takes alone.
  std::vector<int64_t> alone;
  std::vector<int64_t> slowdown_q20;  // per task
  std::vector<bool> contended;        // per task: a communication that others may slow down
  bool several_contended = false;     // such communications in several streams
  uint8_t rivals = 0;                 // streams of the block that may load the links of those
  int64_t launch_ps = 0;
  bool hosted = false;
  bool interferes = false;  // kernels are slower beside communications
};

// When a copy that runs alone takes place, of times relative or not.
struct CopySpan {
  int64_t first_kernel = 0, last_kernel = 0;  // kernels run in between
  int64_t last_comm = 0;                      // end of its last communication
  int64_t undisturbed = 0;                    // nothing else may come between before
  std::vector<Follower> followers;
};
void FindSpan(const Block& block, const BlockIndex& index, const CopyCosts& costs,
              const int64_t* start, const int64_t* end, CopySpan& span);

// The profile of a copy that ran alone from `entry` at times `start` and `end`;
// none if it says nothing of other copies.
std::optional<Profile> MakeProfile(const Block& block, const BlockIndex& index,
                                   const CopyCosts& costs, const Entry& entry, const int64_t* start,
                                   const int64_t* end, const CopySpan& span);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_PROFILE_H_
