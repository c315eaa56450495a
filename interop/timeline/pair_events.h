#ifndef PLANCAST_INTEROP_TIMELINE_PAIR_EVENTS_H_
#define PLANCAST_INTEROP_TIMELINE_PAIR_EVENTS_H_

#include <cstdint>
#include <vector>

#include "interop/timeline/trace_json.h"

namespace plancast {

// A span of a file: the events that begin and end it, -1 where one is missing. Of an X
// event and of a moment, both are that event.
struct PairedEvents {
  int32_t begin = -1, end = -1;

  int32_t first() const { return begin >= 0 ? begin : end; }
};

// By first event. B and E are matched by process and thread in order of time, b and e by
// process, category, id, scope, and name if the end has one, the last begun first. What
// stays alone is listed in `problems`.
std::vector<PairedEvents> PairEvents(const std::vector<TraceEvent>& events,
                                     TraceProblems& problems);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_TIMELINE_PAIR_EVENTS_H_
