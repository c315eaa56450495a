#ifndef PLANCAST_INTEROP_NCCL_TRACE_SUMMARY_H_
#define PLANCAST_INTEROP_NCCL_TRACE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "interop/nccl/trace_events.h"

namespace plancast {

// Times in picoseconds. Spans whose beginning or end is not known count as calls, with
// no time.

// Alike: name, algorithm, protocol, type, bytes, channels.
struct NcclOperationSummary {
  std::string name, algorithm, protocol, datatype;
  int64_t bytes = -1, channels = -1;  // -1: not said
  int64_t calls = 0;
  // Of the operation as the profiler saw it: to the end of the proxy's work if it has any,
  // else of the launch alone.
  int64_t total_ps = 0, least_ps = 0, median_ps = 0, most_ps = 0;
  // From the first block's start to the last one's end, by the GPU's clock where both are
  // there, else by the profiler's; median. -1: no kernel events.
  int64_t kernel_ps = -1;
};

// What the proxy did for a channel and a peer.
struct NcclChannelSummary {
  int64_t rank = -1, channel = -1, peer = -1;
  NcclDirection direction = NcclDirection::kNone;
  int64_t operations = 0, steps = 0;
  int64_t bytes = -1;   // -1: not said
  int64_t step_ps = 0;  // of all steps, which overlap
  int64_t busy_ps = 0;  // while at least one step was in flight
};

// How long steps were in a state, summed; `share` of all states in this direction.
struct NcclWaitSummary {
  NcclDirection direction = NcclDirection::kNone;
  NcclWait wait = NcclWait::kNone;
  int64_t count = 0, total_ps = 0;
  double share = 0;
};

struct NcclTraceSummary {
  std::vector<NcclOperationSummary> operations;  // the most time first
  std::vector<NcclChannelSummary> channels;      // by rank, channel, direction, peer
  std::vector<NcclWaitSummary> waits;            // by direction, the most time first
  int64_t first_ps = 0, last_ps = 0;
};

NcclTraceSummary Summarise(const NcclTrace& trace);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_NCCL_TRACE_SUMMARY_H_
