#ifndef PLANCAST_INTEROP_TIMELINE_TIMELINE_BUILD_H_
#define PLANCAST_INTEROP_TIMELINE_TIMELINE_BUILD_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "interop/timeline/pair_events.h"
#include "interop/timeline/timeline.h"
#include "interop/timeline/trace_json.h"

namespace plancast {

// Makes spans of events; what ReadTimeline() and readers of single tools have in common.
class TimelineBuilder {
 public:
  // Sets the origin so that the events' times fit. Those that lie more than a hundred days
  // before the last do not: they are listed in `problems`.
  TimelineBuilder(const std::vector<TraceEvent>& events, TraceProblems& problems);

  // Whether the event's time is in reach.
  bool InReach(const TraceEvent& event) const;
  // After the origin; InReach().
  int64_t Time(const TraceEvent& event) const;
  // The track by process and thread number, made if it is new.
  int32_t Track(int64_t process, int64_t thread, const std::string& process_name,
                const std::string& thread_name);
  // Name, category, times, args of both events. An end before its begin is listed in
  // `problems`, and the span is a moment. Returns false if it is out of reach.
  bool Span(const PairedEvents& pair, TimelineSpan& span);

  Timeline& timeline() { return timeline_; }

 private:
  const std::vector<TraceEvent>& events_;
  TraceProblems& problems_;
  Timeline timeline_;
  std::map<std::pair<int64_t, int64_t>, int32_t> tracks_;
};

}  // namespace plancast

#endif  // PLANCAST_INTEROP_TIMELINE_TIMELINE_BUILD_H_
