#ifndef PLANCAST_EXECUTOR_SIMULATE_KERNEL_CHAINS_H_
#define PLANCAST_EXECUTOR_SIMULATE_KERNEL_CHAINS_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/events.h"
#include "executor/simulate/host_clock.h"
#include "executor/simulate/overlap.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/snapshot.h"
#include "executor/simulate/streams.h"

namespace plancast {

// Kernels that run: those that follow one another in a stream are one event, whose times
// are known from the beginning and found anew if something comes between.
class KernelChains {
 public:
  KernelChains(const SimInput& in, Streams& streams, HostClock& hosts, Overlap& overlap,
               Events& events);

  // A kernel begins now, with those that follow it. What takes no time is over by that.
  void Start(int32_t entity, int stream, const Streams::OpenLayer& layer,
             const HostClock::OfLayer& clock);
  // A kernel goes on of which so much was left at a time.
  void Resume(int32_t entity, int stream, const Streams::OpenLayer& layer, int64_t since,
              int64_t left, bool slow);
  void End(int32_t cursor);
  // Those of an entity are slow from now on, or no longer.
  void SetSlow(int32_t entity, bool slow);
  // Whether an entity runs a kernel, and until when it goes on so at least.
  bool IsBusy(int32_t entity, int64_t* until) const;

  void Describe(int32_t cursor, Snapshot& snapshot) const;
  void Shift(int32_t cursor, int64_t way) {
    chains_[cursor].since += way;
    chains_[cursor].end += way;
  }

 private:
  // Kernels of a layer that follow one another in a stream, from the first task that is not
  // over.
  struct Chain {
    int32_t end_rank = 0;
    int32_t rank = 0;             // the kernel that ran when last looked at,
    int64_t since = 0, left = 0;  // and what was left of it then
    bool slow = false;
    int64_t end = 0;
  };

  void Restart(int32_t cursor, const Streams::OpenLayer& layer);
  // Finds the times of the tasks of a chain from the one that runs.
  void FindTimes(int32_t cursor, const Streams::OpenLayer& layer, const HostClock::OfLayer& clock);
  // The rank behind the kernels that follow a stream's next task.
  int32_t EndOfChain(int32_t entity, int stream, const Streams::OpenLayer& layer) const;

  const SimInput& in_;
  Streams& streams_;
  HostClock& hosts_;
  Overlap& overlap_;
  Events& events_;
  std::vector<Chain> chains_;  // per cursor
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_KERNEL_CHAINS_H_
