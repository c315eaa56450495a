#include "interop/timeline/timeline.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plancast {
namespace {

absl::Status Bad(absl::string_view what, size_t index, absl::string_view is) {
  return absl::InternalError(absl::StrCat(what, " ", index, " ", is));
}

int64_t EndOf(const TimelineSpan& span) { return span.start_ps + span.duration_ps; }

}  // namespace

absl::Status Timeline::Verify() const {
  for (size_t i = 0; i < spans.size(); ++i) {
    const TimelineSpan& span = spans[i];
    if (span.track < 0 || static_cast<size_t>(span.track) >= tracks.size()) {
      return Bad("span", i, "is on no track");
    }
    if (span.parent >= static_cast<int32_t>(i)) return Bad("span", i, "comes before its parent");
    if (span.duration_ps < 0) return Bad("span", i, "ends before it begins");
  }
  for (size_t i = 0; i < flows.size(); ++i) {
    const TimelineFlow& flow = flows[i];
    for (const auto& [span, ps] :
         {std::make_pair(flow.from, flow.from_ps), std::make_pair(flow.to, flow.to_ps)}) {
      if (span < 0 || static_cast<size_t>(span) >= spans.size()) {
        return Bad("flow", i, "joins no span");
      }
      if (ps < spans[span].start_ps || ps > EndOf(spans[span])) {
        return Bad("flow", i, "has an end outside its span");
      }
    }
  }
  return absl::OkStatus();
}

std::string Timeline::DebugString() const {
  std::string out;
  if (origin_us != 0) absl::StrAppend(&out, "origin ", origin_us, " us\n");
  std::vector<int> depth(spans.size(), 0);
  for (size_t i = 0; i < spans.size(); ++i) {
    const TimelineSpan& span = spans[i];
    if (span.parent >= 0) depth[i] = depth[span.parent] + 1;
    const TimelineTrack& track = tracks[span.track];
    absl::StrAppend(&out, std::string(2 * depth[i], ' '), span.name, " (", span.category, ") on ",
                    track.process_name, " / ", track.thread_name, ": ", Microseconds(span.start_ps),
                    " + ", Microseconds(span.duration_ps), " us",
                    span.missing == TimelineSpan::Missing::kBegin ? ", begin unknown"
                    : span.missing == TimelineSpan::Missing::kEnd ? ", end unknown"
                                                                  : "");
    for (const TraceArg& arg : span.args) absl::StrAppend(&out, " ", arg.key, "=", arg.value);
    out += '\n';
  }
  for (const TimelineFlow& flow : flows) {
    absl::StrAppend(&out, "flow ", flow.name, ": ", spans[flow.from].name, " at ",
                    Microseconds(flow.from_ps), " -> ", spans[flow.to].name, " at ",
                    Microseconds(flow.to_ps), "\n");
  }
  for (const TimelineCounter& counter : counters) {
    absl::StrAppend(&out, "counter ", counter.name, " of ", counter.process, " at ",
                    Microseconds(counter.ps), ":");
    for (const auto& [name, value] : counter.values) absl::StrAppend(&out, " ", name, "=", value);
    out += '\n';
  }
  return out;
}

std::vector<int32_t> AssignLanes(const Timeline& timeline) {
  const std::vector<TimelineSpan>& spans = timeline.spans;
  std::vector<int32_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  // What encloses comes before what it encloses.
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (spans[a].start_ps != spans[b].start_ps) return spans[a].start_ps < spans[b].start_ps;
    return spans[a].duration_ps > spans[b].duration_ps;
  });
  // Of every lane of a track, the spans that are open, innermost last.
  std::vector<std::vector<std::vector<int32_t>>> open(timeline.tracks.size());
  std::vector<int32_t> lane_of(spans.size(), -1);
  for (int32_t i : order) {
    std::vector<std::vector<int32_t>>& lanes = open[spans[i].track];
    const auto close = [&](std::vector<int32_t>& lane) {
      while (!lane.empty() && EndOf(spans[lane.back()]) <= spans[i].start_ps) lane.pop_back();
    };
    const int32_t parent = spans[i].parent;
    size_t lane = lanes.size();
    if (parent >= 0 && spans[parent].track == spans[i].track && lane_of[parent] >= 0 &&
        EndOf(spans[i]) <= EndOf(spans[parent])) {
      std::vector<int32_t>& around = lanes[lane_of[parent]];
      close(around);
      if (!around.empty() && around.back() == parent) lane = static_cast<size_t>(lane_of[parent]);
    }
    for (size_t free = 0; lane == lanes.size() && free < lanes.size(); ++free) {
      close(lanes[free]);
      if (lanes[free].empty()) lane = free;
    }
    if (lane == lanes.size()) lanes.emplace_back();
    lanes[lane].push_back(i);
    lane_of[i] = static_cast<int32_t>(lane);
  }
  return lane_of;
}

std::string Microseconds(int64_t ps) {
  // Unsigned: the magnitude of the least number.
  const uint64_t size = ps < 0 ? 0 - static_cast<uint64_t>(ps) : static_cast<uint64_t>(ps);
  return absl::StrFormat("%s%d.%06d", ps < 0 ? "-" : "", size / 1'000'000, size % 1'000'000);
}

}  // namespace plancast
