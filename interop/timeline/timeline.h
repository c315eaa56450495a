#ifndef PLANCAST_INTEROP_TIMELINE_TIMELINE_H_
#define PLANCAST_INTEROP_TIMELINE_TIMELINE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "interop/timeline/trace_json.h"

namespace plancast {

// A row of a timeline: a stream of a device, a channel of a communicator, a thread.
struct TimelineTrack {
  int64_t process = 0;       // device or rank
  int64_t thread = 0;        // orders the tracks of a process
  std::string process_name;  // the same for all tracks of a process
  std::string thread_name;
};

// Something that took time. Spans of one track may overlap.
struct TimelineSpan {
  enum class Missing : uint8_t { kNone, kBegin, kEnd };

  std::string name, category, colour;  // colour: a name of the format, or empty
  int32_t track = 0;
  int32_t parent = -1;  // the span that it is part of, on any track
  int64_t start_ps = 0, duration_ps = 0;
  // The file did not say when it began or ended; then it is a moment, at the other end.
  Missing missing = Missing::kNone;
  int64_t line = 0;  // of its beginning in the file; 0: none
  std::vector<TraceArg> args;
};

// From a moment in one span to a moment in another.
struct TimelineFlow {
  std::string name, category;
  int32_t from = -1, to = -1;  // spans
  int64_t from_ps = 0, to_ps = 0;
};

// A quantity of a process over time; values by name.
struct TimelineCounter {
  int64_t process = 0;
  std::string name;
  int64_t ps = 0;
  std::vector<std::pair<std::string, double>> values;
};

// What happened when, from a forecast or from a file. Times are picoseconds after
// `origin_us` microseconds (0 unless the file counts from an epoch).
struct Timeline {
  int64_t origin_us = 0;
  std::vector<TimelineTrack> tracks;
  std::vector<TimelineSpan> spans;
  std::vector<TimelineFlow> flows;
  std::vector<TimelineCounter> counters;

  // Names and indices exist, parents come before no child of theirs, durations are not
  // negative, flows leave and reach their spans while these last.
  absl::Status Verify() const;
  // One line a span, indented below its parent; then flows and counters.
  std::string DebugString() const;
};

// The lane of each span on its track, such that slices of one lane nest or do not
// overlap: inside its parent if that is on the same track and lasts long enough, else on
// the first lane that is free. Lane 0 is the first.
std::vector<int32_t> AssignLanes(const Timeline& timeline);

// Microseconds with six digits behind the point, which is exact.
std::string Microseconds(int64_t ps);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_TIMELINE_TIMELINE_H_
