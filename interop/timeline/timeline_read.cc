#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "interop/timeline/pair_events.h"
#include "interop/timeline/timeline_build.h"
#include "interop/timeline/timeline_json.h"

namespace plancast {
namespace {

// How far up enclosing slices are looked for: files whose slices overlap need no more.
constexpr int kMostAround = 64;

int64_t EndOf(const TimelineSpan& span) { return span.start_ps + span.duration_ps; }

class TimelineReader {
 public:
  explicit TimelineReader(TraceFile& file)
      : file_(file), builder_(file.events, file.problems), timeline_(builder_.timeline()) {}

  Timeline Run() {
    ReadNames();
    for (const PairedEvents& pair : PairEvents(file_.events, file_.problems)) {
      TimelineSpan span;
      if (!builder_.Span(pair, span)) continue;
      span.track = TrackOf(file_.events[pair.first()]);
      timeline_.spans.push_back(std::move(span));
    }
    if (!file_.ours) SortSpans();
    if (!file_.ours || !SaidParents()) EnclosingParents();
    ReadFlows();
    ReadCounters();
    return std::move(timeline_);
  }

 private:
  // Numbers stay what they are; names get numbers that are not taken.
  int64_t Number(const std::string& text, std::map<std::string, int64_t>& named) {
    int64_t number = 0;
    if (text.empty() || absl::SimpleAtoi(text, &number)) return number;
    return named.try_emplace(text, int64_t{1'000'000'000} + static_cast<int64_t>(named.size()))
        .first->second;
  }

  int64_t Process(const TraceEvent& event) { return Number(event.process, processes_); }

  void ReadNames() {
    for (const TraceEvent& event : file_.events) {
      if (event.phase != 'M') continue;
      for (const TraceArg& arg : event.args) {
        if (arg.key != "name") continue;
        if (event.name == "process_name") process_names_[Process(event)] = arg.value;
        if (event.name == "thread_name") {
          thread_names_[{Process(event), Number(event.thread, threads_)}] = arg.value;
        }
      }
    }
  }

  int32_t TrackOf(const TraceEvent& event) {
    const int64_t process = Process(event);
    const auto named = process_names_.find(process);
    const std::string process_name = named != process_names_.end() ? named->second
                                     : event.process.empty()       ? "process"
                                                                   : event.process;
    // Asynchronous events belong to no thread: a track for each category.
    if (event.phase == 'b' || event.phase == 'e' || event.phase == 'n') {
      const int64_t thread = Number(absl::StrCat("async ", event.category), threads_);
      return builder_.Track(process, thread, process_name, event.category);
    }
    const int64_t thread = Number(event.thread, threads_);
    const auto at = thread_names_.find({process, thread});
    return builder_.Track(process, thread, process_name,
                          at != thread_names_.end() ? at->second
                          : event.thread.empty()    ? "thread"
                                                    : event.thread);
  }

  // Of a file of our own that names spans and parents. False: it does not.
  bool SaidParents() {
    std::vector<int32_t> number(timeline_.spans.size(), -1), parent(timeline_.spans.size(), -1);
    absl::flat_hash_map<int32_t, int32_t> by_number;
    for (size_t i = 0; i < timeline_.spans.size(); ++i) {
      std::vector<TraceArg>& args = timeline_.spans[i].args;
      for (const TraceArg& arg : args) {
        if (arg.key == "span" && !absl::SimpleAtoi(arg.value, &number[i])) return false;
        if (arg.key == "parent" && !absl::SimpleAtoi(arg.value, &parent[i])) return false;
        if (arg.key == "missing") {
          timeline_.spans[i].missing =
              arg.value == "begin" ? TimelineSpan::Missing::kBegin : TimelineSpan::Missing::kEnd;
        }
      }
      args.erase(std::remove_if(args.begin(), args.end(),
                                [](const TraceArg& arg) {
                                  return arg.key == "span" || arg.key == "parent" ||
                                         arg.key == "missing";
                                }),
                 args.end());
      if (number[i] >= 0) by_number.emplace(number[i], static_cast<int32_t>(i));
    }
    if (by_number.empty()) return false;
    for (size_t i = 0; i < timeline_.spans.size(); ++i) {
      const auto at = by_number.find(parent[i]);
      if (at != by_number.end() && at->second < static_cast<int32_t>(i)) {
        timeline_.spans[i].parent = at->second;
      }
    }
    return true;
  }

  // By start, what encloses before what it encloses. A file of our own has its order.
  void SortSpans() { std::stable_sort(timeline_.spans.begin(), timeline_.spans.end(), Before); }

  static bool Before(const TimelineSpan& a, const TimelineSpan& b) {
    if (a.start_ps != b.start_ps) return a.start_ps < b.start_ps;
    return a.duration_ps > b.duration_ps;
  }

  // Parents on the same track.
  void EnclosingParents() {
    std::vector<TimelineSpan>& spans = timeline_.spans;
    std::vector<int32_t> order(spans.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return Before(spans[a], spans[b]); });
    std::vector<std::vector<int32_t>> open(timeline_.tracks.size());
    for (int32_t i : order) {
      std::vector<int32_t>& around = open[spans[i].track];
      while (!around.empty() && EndOf(spans[around.back()]) <= spans[i].start_ps) {
        around.pop_back();
      }
      for (size_t up = 0; up < std::min<size_t>(around.size(), kMostAround); ++up) {
        const int32_t candidate = around[around.size() - 1 - up];
        if (EndOf(spans[candidate]) < EndOf(spans[i]) || candidate > i) continue;
        spans[i].parent = candidate;
        break;
      }
      around.push_back(i);
    }
  }

  // The innermost span of the thread that lasts at the event's time, -1: none.
  int32_t SpanAt(const TraceEvent& event) {
    if (starts_.empty()) {
      starts_.resize(timeline_.tracks.size());
      for (size_t i = 0; i < timeline_.spans.size(); ++i) {
        starts_[timeline_.spans[i].track].push_back(static_cast<int32_t>(i));
      }
      for (std::vector<int32_t>& spans : starts_) {
        std::stable_sort(spans.begin(), spans.end(), [&](int32_t a, int32_t b) {
          return timeline_.spans[a].start_ps < timeline_.spans[b].start_ps;
        });
      }
    }
    const auto track = static_cast<size_t>(TrackOf(event));
    if (track >= starts_.size()) return -1;  // no span was on it
    const std::vector<int32_t>& spans = starts_[track];
    const int64_t ps = builder_.Time(event);
    auto after = std::upper_bound(spans.begin(), spans.end(), ps, [&](int64_t time, int32_t span) {
      return time < timeline_.spans[span].start_ps;
    });
    for (int up = 0; after != spans.begin() && up < kMostAround; ++up) {
      --after;
      if (EndOf(timeline_.spans[*after]) >= ps) return *after;
    }
    return -1;
  }

  void ReadFlows() {
    struct Open {
      int32_t span = -1;
      int64_t ps = 0;
    };
    std::map<std::tuple<std::string, std::string, std::string>, Open> open;
    for (const TraceEvent& event : file_.events) {
      if (event.phase != 's' && event.phase != 't' && event.phase != 'f') continue;
      const int32_t span = builder_.InReach(event) ? SpanAt(event) : -1;
      const auto key = std::make_tuple(event.category, event.name, event.id);
      const auto from = open.find(key);
      if (span < 0 || (event.phase != 's' && from == open.end())) {
        file_.problems.Add(
            event.line, absl::StrCat("a flow (id ", event.id.substr(0, 40),
                                     span < 0 ? ") that joins no slice" : ") that did not begin"));
        continue;
      }
      if (event.phase != 's') {
        timeline_.flows.push_back({event.name, event.category, from->second.span, span,
                                   from->second.ps, builder_.Time(event)});
      }
      if (event.phase == 'f') {
        open.erase(key);
      } else {
        open[key] = {span, builder_.Time(event)};
      }
    }
  }

  void ReadCounters() {
    for (const TraceEvent& event : file_.events) {
      if (event.phase != 'C' || !builder_.InReach(event)) continue;
      TimelineCounter counter = {Process(event), event.name, builder_.Time(event), {}};
      for (const TraceArg& arg : event.args) {
        double value = 0;
        if (absl::SimpleAtod(arg.value, &value) && std::isfinite(value)) {
          counter.values.emplace_back(arg.key, value);
        }
      }
      timeline_.counters.push_back(std::move(counter));
    }
  }

  TraceFile& file_;
  TimelineBuilder builder_;
  Timeline& timeline_;
  std::map<std::string, int64_t> processes_, threads_;
  std::map<int64_t, std::string> process_names_;
  std::map<std::pair<int64_t, int64_t>, std::string> thread_names_;
  std::vector<std::vector<int32_t>> starts_;
};

}  // namespace

absl::StatusOr<TimelineFile> ReadTimeline(absl::string_view text, absl::string_view what) {
  ASSIGN_OR_RETURN(TraceFile file, ReadTraceFile(text, what));
  TimelineFile out;
  out.timeline = TimelineReader(file).Run();
  out.problems = std::move(file.problems);
  RETURN_IF_ERROR(out.timeline.Verify());
  return out;
}

}  // namespace plancast
