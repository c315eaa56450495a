#include "interop/timeline/timeline_build.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/int128.h"

namespace plancast {
namespace {

constexpr int128 kPsPerUs = 1'000'000;
// A hundred days: what 64 bits of picoseconds hold, less a little.
constexpr int128 kReachPs = int128{100} * 86'400 * 1'000'000 * kPsPerUs;

}  // namespace

TimelineBuilder::TimelineBuilder(const std::vector<TraceEvent>& events, TraceProblems& problems)
    : events_(events), problems_(problems) {
  bool any = false;
  int128 last = 0;
  for (const TraceEvent& event : events) {
    if (!event.has_time) continue;
    last = any ? std::max(last, event.start_ps) : event.start_ps;
    any = true;
  }
  if (last <= kReachPs && last >= -kReachPs / 2) return;
  int128 first = last;
  for (const TraceEvent& event : events) {
    if (event.has_time && event.start_ps >= last - kReachPs)
      first = std::min(first, event.start_ps);
  }
  timeline_.origin_us = static_cast<int64_t>(FloorDiv<int128>(first, kPsPerUs));
}

bool TimelineBuilder::InReach(const TraceEvent& event) const {
  const int128 ps = event.start_ps - timeline_.origin_us * kPsPerUs;
  return ps <= kReachPs && ps >= -kReachPs;
}

int64_t TimelineBuilder::Time(const TraceEvent& event) const {
  return static_cast<int64_t>(event.start_ps - timeline_.origin_us * kPsPerUs);
}

int32_t TimelineBuilder::Track(int64_t process, int64_t thread, const std::string& process_name,
                               const std::string& thread_name) {
  const auto [at, is_new] =
      tracks_.try_emplace({process, thread}, static_cast<int32_t>(timeline_.tracks.size()));
  if (is_new) timeline_.tracks.push_back({process, thread, process_name, thread_name});
  return at->second;
}

bool TimelineBuilder::Span(const PairedEvents& pair, TimelineSpan& span) {
  const TraceEvent& first = events_[pair.first()];
  span.name = first.name;
  span.category = first.category;
  span.args = first.args;
  span.line = first.line;
  if (!InReach(first)) {
    problems_.Add(first.line, absl::StrCat("`", first.name.substr(0, 60),
                                           "` lies more than 100 days from the others"));
    return false;
  }
  span.start_ps = Time(first);
  if (pair.begin < 0) span.missing = TimelineSpan::Missing::kBegin;
  if (pair.end < 0) span.missing = TimelineSpan::Missing::kEnd;
  if (span.missing != TimelineSpan::Missing::kNone) return true;
  if (pair.begin == pair.end) {
    span.duration_ps = std::min<int64_t>(first.duration_ps, static_cast<int64_t>(kReachPs / 2));
    return true;
  }
  const TraceEvent& last = events_[pair.end];
  span.args.insert(span.args.end(), last.args.begin(), last.args.end());
  if (!InReach(last) || last.start_ps < first.start_ps) {
    problems_.Add(last.line, absl::StrCat("`", first.name.substr(0, 60),
                                          "` ends before it begins, at line ", first.line));
    span.missing = TimelineSpan::Missing::kEnd;
    return true;
  }
  span.duration_ps = static_cast<int64_t>(last.start_ps - first.start_ps);
  return true;
}

}  // namespace plancast
