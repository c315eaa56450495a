#include "absl/status/statusor.h"
#include "interop/nccl/trace_events.h"
#include "interop/nccl/trace_summary.h"
#include "interop/timeline/timeline_json.h"
#include "tests/fuzz/native/targets/groups.h"

namespace plancast {
namespace {

// What was read is sound, is written, and comes back without a loss.
absl::Status Written(const Timeline& timeline) {
  if (absl::Status sound = timeline.Verify(); !sound.ok()) return sound;
  const absl::StatusOr<TimelineFile> back = ReadTimeline(TimelineJson(timeline), "written");
  if (!back.ok()) {
    return timeline.spans.empty() ? absl::OkStatus() : absl::InternalError(back.status().message());
  }
  return back->timeline.spans.size() == timeline.spans.size()
             ? absl::OkStatus()
             : absl::InternalError("spans were lost on the way through the file");
}

absl::Status ChromeTraceFile(absl::string_view bytes) {
  const absl::StatusOr<TimelineFile> file = ReadTimeline(bytes, "trace");
  return file.ok() ? Written(file->timeline) : file.status();
}

absl::Status NcclTraceFile(absl::string_view bytes) {
  const absl::StatusOr<NcclTrace> trace = ReadNcclTrace(bytes, "trace");
  if (!trace.ok()) return trace.status();
  Summarise(*trace);
  return Written(trace->timeline);
}

}  // namespace

std::vector<FuzzTarget> TraceTargets() {
  const std::vector<std::string> openers = {"{\"args\": ", "[", "{", "{\"a\":[",
                                            "{\"ph\":\"b\",\"ts\":1,\"name\":\"n\"},"};
  return {{"chrome_trace",
           ChromeTraceFile,
           {"\"ph\": \"B\"", "\"ph\": \"E\"", "\"ph\": \"b\"", "\"ph\": \"e\"", "\"ph\": \"s\"",
            "\"ph\": \"f\"", "\"traceEvents\": [", "\"ts\":", "1765223116927674.25", "\\ud83d"},
           openers},
          {"nccl_trace",
           NcclTraceFile,
           {"\"cat\": \"NET\"", "\"cat\": \"PROXY\"", "\"cat\": \"COLL\"", "Send-1-2", "-nan",
            "\xe2\x80\x9c", "\xe2\x80\x9d", "\"ph\": \"b\"", "\"ph\": \"e\"", "0x1f", "{}"},
           openers}};
}

}  // namespace plancast
