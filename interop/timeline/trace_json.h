#ifndef PLANCAST_INTEROP_TIMELINE_TRACE_JSON_H_
#define PLANCAST_INTEROP_TIMELINE_TRACE_JSON_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/int128.h"

namespace plancast {

// One entry of an event's `args`. Nested objects and lists are flattened:
// `POSTED.ts`, `dims.0`.
struct TraceArg {
  std::string key, value;
  bool quoted = false;  // a string in the file

  friend bool operator==(const TraceArg& a, const TraceArg& b) {
    return a.key == b.key && a.value == b.value && a.quoted == b.quoted;
  }
};

// An event object of the Chrome trace format, as it stands in the file.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
struct TraceEvent {
  char phase = 0;                         // X, B, E, b, e, n, i, C, s, t, f, M, ...
  bool has_time = false;                  // `ts` was there
  std::string name, category, id, scope;  // `id` also of `id2`
  std::string process, thread;            // `pid`, `tid`: numbers or names
  int128 start_ps = 0;                    // `ts` is microseconds; all its digits count
  int64_t duration_ps = 0;                // `dur`
  int64_t line = 0;                       // of the file, from 1
  std::vector<TraceArg> args;
};

// Something that a reader did not take, and why.
struct TraceProblem {
  int64_t line = 0;
  std::string reason;
};

struct TraceProblems {
  static constexpr size_t kMostShown = 1000;

  std::vector<TraceProblem> shown;  // the first kMostShown, by line
  int64_t count = 0;
  // What is no JSON but was understood: kind -> how often, first line.
  std::map<std::string, std::pair<int64_t, int64_t>> mended;

  void Add(int64_t line, std::string reason);
  void Mend(int64_t line, absl::string_view kind);
};

struct TraceFile {
  std::vector<TraceEvent> events;  // in the order of the file
  TraceProblems problems;
  bool ours = false;  // TimelineJson() wrote it
};

// The events of a file: a list, or an object with `traceEvents`. Files of other
// tools are not always JSON, so that unquoted words, curly and missing quotes,
// commas and brackets are put up with, and what cannot be understood is skipped and
// listed. Errors, which begin with `what`: no event in the file, text above 1 GiB.
absl::StatusOr<TraceFile> ReadTraceFile(absl::string_view text, absl::string_view what);

// Whether a word is a number as JSON writes it.
bool IsJsonNumber(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_TIMELINE_TRACE_JSON_H_
