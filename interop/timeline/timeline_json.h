#ifndef PLANCAST_INTEROP_TIMELINE_TIMELINE_JSON_H_
#define PLANCAST_INTEROP_TIMELINE_TIMELINE_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/timeline/timeline.h"
#include "interop/timeline/trace_json.h"

namespace plancast {

// The timeline in the Chrome trace format, which ui.perfetto.dev opens: X slices
// that nest or do not overlap on their track, where they would, on a further track of
// the same name and a number; flows; counters. Times are microseconds with
// picosecond digits. Where a span's parent is not the slice around it, its args name
// both (`span`, `parent`), so that ReadTimeline() finds it again.
std::string TimelineJson(const Timeline& timeline);

struct TimelineFile {
  Timeline timeline;
  TraceProblems problems;
};

// A file in the Chrome trace format. Begins and ends are matched by thread (B, E) or by
// category and id (b, e, and by name where it is said); those that stay alone become
// moments and are listed as problems. Spans are in order of their beginnings in the
// file. Errors: ReadTraceFile()'s.
absl::StatusOr<TimelineFile> ReadTimeline(absl::string_view text, absl::string_view what);

// A JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
std::string JsonString(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_TIMELINE_TIMELINE_JSON_H_
