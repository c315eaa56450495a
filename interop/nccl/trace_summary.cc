#include "interop/nccl/trace_summary.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/int128.h"

namespace plancast {
namespace {

using Interval = std::pair<int64_t, int64_t>;

// Sums of what a file says may be more than a number holds: then the largest.
void Add(int64_t more, int64_t* sum) { *sum = SaturateToInt64(int128{*sum} + more); }

int64_t EndOf(const TimelineSpan& span) { return span.start_ps + span.duration_ps; }

bool Timed(const TimelineSpan& span) { return span.missing == TimelineSpan::Missing::kNone; }

int64_t Median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Length of the union.
int64_t Covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t covered = 0, end = 0;
  bool any = false;
  for (const auto& [from, to] : intervals) {
    const int64_t begin = any ? std::max(from, end) : from;
    if (to > begin) covered += to - begin;
    end = any ? std::max(end, to) : to;
    any = true;
  }
  return covered;
}

// The blocks of one operation's kernel.
struct Kernel {
  int64_t first_ps = INT64_MAX, last_ps = INT64_MIN;
  int64_t first_clock = INT64_MAX, last_clock = 0;
  bool clocks = true;

  void Add(const TimelineSpan& span) {
    first_ps = std::min(first_ps, span.start_ps);
    last_ps = std::max(last_ps, EndOf(span));
    int64_t start = 0, stop = 0;
    for (const TraceArg& arg : span.args) {
      int64_t value = 0;
      if (!absl::SimpleAtoi(arg.value, &value)) continue;
      if (arg.key == "StartGpuClk") start = value;
      if (arg.key == "StopGpuClk") stop = value;
    }
    clocks &= start > 0 && stop >= start;
    first_clock = std::min(first_clock, start);
    last_clock = std::max(last_clock, stop);
  }
  // The clock counts nanoseconds (PTX %globaltimer).
  int64_t Ps() const {
    constexpr int64_t kMost = INT64_MAX / 1000;
    return clocks && last_clock - first_clock < kMost ? (last_clock - first_clock) * 1000
                                                      : last_ps - first_ps;
  }
};

void SummariseOperations(const NcclTrace& trace, NcclTraceSummary& summary) {
  const std::vector<TimelineSpan>& spans = trace.timeline.spans;
  std::map<int32_t, Kernel> kernels;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (trace.events[i].kind == NcclEventKind::kKernel && spans[i].parent >= 0 && Timed(spans[i])) {
      kernels[spans[i].parent].Add(spans[i]);
    }
  }
  using Key = std::tuple<std::string, std::string, std::string, std::string, int64_t, int64_t>;
  struct Calls {
    int64_t calls = 0;
    std::vector<int64_t> times, kernels;
  };
  std::map<Key, Calls> groups;
  for (size_t i = 0; i < spans.size(); ++i) {
    const NcclEvent& event = trace.events[i];
    if (event.kind != NcclEventKind::kCollective && event.kind != NcclEventKind::kPointToPoint &&
        !(event.kind == NcclEventKind::kCopyEngine && spans[i].category == "CE_COLL")) {
      continue;
    }
    Calls& group = groups[{spans[i].name, event.algorithm, event.protocol, event.datatype,
                           event.bytes, event.channels}];
    ++group.calls;
    if (Timed(spans[i])) group.times.push_back(spans[i].duration_ps);
    const auto kernel = kernels.find(static_cast<int32_t>(i));
    if (kernel != kernels.end()) group.kernels.push_back(kernel->second.Ps());
  }
  for (const auto& [key, group] : groups) {
    NcclOperationSummary out;
    std::tie(out.name, out.algorithm, out.protocol, out.datatype, out.bytes, out.channels) = key;
    out.calls = group.calls;
    for (int64_t time : group.times) Add(time, &out.total_ps);
    if (!group.times.empty()) {
      const auto [least, most] = std::minmax_element(group.times.begin(), group.times.end());
      out.least_ps = *least;
      out.most_ps = *most;
      out.median_ps = Median(group.times);
    }
    if (!group.kernels.empty()) out.kernel_ps = Median(group.kernels);
    summary.operations.push_back(std::move(out));
  }
  std::stable_sort(summary.operations.begin(), summary.operations.end(),
                   [](const auto& a, const auto& b) { return a.total_ps > b.total_ps; });
}

void SummariseChannels(const NcclTrace& trace, NcclTraceSummary& summary) {
  using Key = std::tuple<int64_t, int64_t, NcclDirection, int64_t>;
  std::map<Key, NcclChannelSummary> channels;
  std::map<Key, std::vector<Interval>> steps;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const NcclEvent& event = trace.events[i];
    const TimelineSpan& span = trace.timeline.spans[i];
    const bool operation = event.kind == NcclEventKind::kProxyOp;
    if (!operation && event.kind != NcclEventKind::kStep) continue;
    const Key key = {event.rank, event.channel, event.direction, event.peer};
    NcclChannelSummary& channel = channels[key];
    std::tie(channel.rank, channel.channel, channel.direction, channel.peer) = key;
    if (operation) {
      // Newer plugins write every operation twice: until it is scheduled, and then its progress.
      if (span.name.compare(0, 8, "Schedule") == 0) continue;
      ++channel.operations;
      if (event.bytes < 0) continue;
      channel.bytes = std::max<int64_t>(channel.bytes, 0);
      Add(event.bytes, &channel.bytes);
      continue;
    }
    ++channel.steps;
    if (!Timed(span)) continue;
    Add(span.duration_ps, &channel.step_ps);
    steps[key].emplace_back(span.start_ps, EndOf(span));
  }
  for (auto& [key, channel] : channels) {
    const auto at = steps.find(key);
    if (at != steps.end()) channel.busy_ps = Covered(at->second);
    summary.channels.push_back(channel);
  }
}

void SummariseWaits(const NcclTrace& trace, NcclTraceSummary& summary) {
  std::map<std::pair<NcclDirection, NcclWait>, NcclWaitSummary> waits;
  std::map<NcclDirection, double> totals;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const NcclEvent& event = trace.events[i];
    if (event.kind != NcclEventKind::kWait) continue;
    NcclWaitSummary& wait = waits[{event.direction, event.wait}];
    wait.direction = event.direction;
    wait.wait = event.wait;
    ++wait.count;
    if (!Timed(trace.timeline.spans[i])) continue;
    Add(trace.timeline.spans[i].duration_ps, &wait.total_ps);
    totals[event.direction] += static_cast<double>(trace.timeline.spans[i].duration_ps);
  }
  for (auto& [key, wait] : waits) {
    const double total = totals[wait.direction];
    wait.share = total > 0 ? static_cast<double>(wait.total_ps) / total : 0;
    summary.waits.push_back(wait);
  }
  std::stable_sort(summary.waits.begin(), summary.waits.end(), [](const auto& a, const auto& b) {
    return a.direction != b.direction ? a.direction < b.direction : a.total_ps > b.total_ps;
  });
}

}  // namespace

NcclTraceSummary Summarise(const NcclTrace& trace) {
  NcclTraceSummary summary;
  SummariseOperations(trace, summary);
  SummariseChannels(trace, summary);
  SummariseWaits(trace, summary);
  bool any = false;
  for (const TimelineSpan& span : trace.timeline.spans) {
    summary.first_ps = any ? std::min(summary.first_ps, span.start_ps) : span.start_ps;
    summary.last_ps = any ? std::max(summary.last_ps, EndOf(span)) : EndOf(span);
    any = true;
  }
  return summary;
}

}  // namespace plancast
