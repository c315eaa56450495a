#include "interop/nccl/trace_events.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "interop/nccl/trace_words.h"
#include "interop/timeline/pair_events.h"
#include "interop/timeline/timeline_build.h"

namespace plancast {
namespace {

// How far out enclosing events are looked for; NCCL's go eight deep.
constexpr int kMostAround = 64;
constexpr int32_t kUnended = std::numeric_limits<int32_t>::max();

const TraceArg* FindArg(const std::vector<TraceArg>& args, absl::string_view key) {
  for (const TraceArg& arg : args) {
    if (absl::EqualsIgnoreCase(arg.key, key)) return &arg;
  }
  return nullptr;
}

void ReadNumber(const std::vector<TraceArg>& args, absl::string_view key, int64_t& value) {
  int64_t number = 0;
  const TraceArg* arg = FindArg(args, key);
  if (arg != nullptr && absl::SimpleAtoi(arg->value, &number) && number >= 0) value = number;
}

void ReadText(const std::vector<TraceArg>& args, absl::string_view key, std::string& value) {
  if (const TraceArg* arg = FindArg(args, key); arg != nullptr) value = arg->value;
}

class NcclReader {
 public:
  explicit NcclReader(TraceFile file)
      : file_(std::move(file)), builder_(file_.events, file_.problems) {}

  absl::StatusOr<NcclTrace> Run(absl::string_view what) {
    RETURN_IF_ERROR(FindDialect(what));
    for (const PairedEvents& pair : PairEvents(file_.events, file_.problems)) Add(pair);
    PlaceOnTracks();
    trace_.timeline.origin_us = builder_.timeline().origin_us;
    trace_.timeline.tracks = std::move(builder_.timeline().tracks);
    trace_.problems = std::move(file_.problems);
    RETURN_IF_ERROR(trace_.timeline.Verify());
    return std::move(trace_);
  }

 private:
  // A span that is open in the file, and where it ends there.
  struct Around {
    int32_t span = -1, end = -1;
    int level = 0;
  };

  absl::Status FindDialect(absl::string_view what) {
    bool plugin = false, profile = false;
    for (const TraceEvent& event : file_.events) {
      plugin |= event.category != "NET" && FindNcclCategory(event.category) != nullptr;
      profile |= event.category == "NET";
    }
    if (!plugin && !profile) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " holds ", file_.events.size(),
          " events of a trace, but none of NCCL's (`COLL`, "
          "`PROXY`, `NET`, ...). NCCL writes them with its example profiler plugin and "
          "NCCL_PROFILE_DUMP_FILE, or, before 2.23, with NCCL_PROXY_PROFILE."));
    }
    trace_.dialect = plugin ? NcclTraceDialect::kProfilerPlugin : NcclTraceDialect::kProxyProfile;
    return absl::OkStatus();
  }

  void Add(const PairedEvents& pair) {
    TimelineSpan span;
    const TraceEvent& first = file_.events[pair.first()];
    if (!builder_.Span(pair, span)) return;
    // The plugin writes 0 for what it did not see.
    if (trace_.dialect == NcclTraceDialect::kProfilerPlugin && first.start_ps == 0 &&
        span.missing == TimelineSpan::Missing::kNone && span.duration_ps > 0) {
      file_.problems.Add(
          span.line, absl::StrCat("`", span.name.substr(0, 60), "` has no time of its beginning"));
      span.start_ps += span.duration_ps;
      span.duration_ps = 0;
      span.missing = TimelineSpan::Missing::kBegin;
    }
    NcclEvent event;
    const int level = Classify(first, event);
    CloseUnended(first.process, level);
    span.parent = Enclosing(first.process, pair.first(), level);
    if (event.kind == NcclEventKind::kWait && trace_.dialect == NcclTraceDialect::kProfilerPlugin) {
      span.parent = StepOf(first, span, event);
    }
    if (span.parent >= 0) Inherit(trace_.events[span.parent], event);
    ReadArgs(span.args, event);
    Push(std::move(span), std::move(event), first.process);
    if (pair.begin >= 0 && pair.end != pair.begin) {
      around_[first.process].push_back({static_cast<int32_t>(trace_.events.size()) - 1,
                                        pair.end < 0 ? kUnended : pair.end, level});
    }
  }

  void Push(TimelineSpan span, NcclEvent event, const std::string& process) {
    trace_.timeline.spans.push_back(std::move(span));
    trace_.events.push_back(std::move(event));
    process_of_.push_back(process);
  }

  // The kind of an event, and its level.
  int Classify(const TraceEvent& first, NcclEvent& event) {
    const NcclCategory* category = FindNcclCategory(first.category);
    if (category == nullptr) return kNcclWaitLevel + 2;
    event.kind = category->kind;
    int level = category->level;
    bool send = false;
    if (event.kind == NcclEventKind::kWait) {
      if (ParseProxyStep(first.name, send, event.peer, event.step)) {
        event.kind = NcclEventKind::kStep;
        event.direction = send ? NcclDirection::kSend : NcclDirection::kReceive;
        level = kNcclStepLevel;
      } else if (!ParseWait(first.name, event.wait, event.direction)) {
        event.kind = NcclEventKind::kProxyThread;
      }
      if (trace_.dialect == NcclTraceDialect::kProxyProfile &&
          (!absl::SimpleAtoi(first.process, &event.channel) || event.channel < 0)) {
        event.channel = -1;
      }
    } else if (event.kind == NcclEventKind::kProxyOp) {
      if (absl::StrContains(first.name, "Send")) {
        event.direction = NcclDirection::kSend;
      } else if (absl::StrContains(first.name, "Recv")) {
        event.direction = NcclDirection::kReceive;
      } else {
        event.kind = NcclEventKind::kProxyThread;  // Idle, Sleep, Append
      }
    }
    return level;
  }

  // What has no end in the file encloses what follows, up to the next of its level.
  void CloseUnended(const std::string& process, int level) {
    std::vector<Around>& around = around_[process];
    while (!around.empty() && around.back().end == kUnended && level <= around.back().level) {
      around.pop_back();
    }
  }

  // The innermost span of the process that encloses event `at` in the file.
  int32_t Enclosing(const std::string& process, int32_t at, int level) {
    std::vector<Around>& around = around_[process];
    while (!around.empty() && around.back().end < at) around.pop_back();
    for (int up = 0; up < std::min<int>(kMostAround, static_cast<int>(around.size())); ++up) {
      const Around& candidate = around[around.size() - 1 - up];
      if (candidate.end > at && candidate.level < level) return candidate.span;
    }
    return -1;
  }

  // The step that a wait of the plugin's dump belongs to, made or made longer.
  int32_t StepOf(const TraceEvent& first, const TimelineSpan& wait, const NcclEvent& event) {
    const auto key = std::make_tuple(first.process, wait.parent, first.id);
    const auto at = step_of_.find(key);
    std::vector<TimelineSpan>& spans = trace_.timeline.spans;
    if (at != step_of_.end()) {
      TimelineSpan& step = spans[at->second];
      const int64_t end =
          std::max(step.start_ps + step.duration_ps, wait.start_ps + wait.duration_ps);
      step.start_ps = std::min(step.start_ps, wait.start_ps);
      step.duration_ps = end - step.start_ps;
      return at->second;
    }
    TimelineSpan step;
    NcclEvent made;
    made.kind = NcclEventKind::kStep;
    made.direction = event.direction;
    step.parent = wait.parent;
    if (step.parent >= 0) Inherit(trace_.events[step.parent], made);
    if (event.direction != NcclDirection::kNone) made.direction = event.direction;
    ReadNumber(wait.args, "Step", made.step);
    step.name = made.step < 0 ? "step" : absl::StrCat("step ", made.step);
    step.category = "STEP";
    step.start_ps = wait.start_ps;
    step.duration_ps = wait.duration_ps;
    step.line = wait.line;
    Push(std::move(step), std::move(made), first.process);
    const auto index = static_cast<int32_t>(trace_.events.size()) - 1;
    step_of_.emplace(key, index);
    return index;
  }

  static void Inherit(const NcclEvent& parent, NcclEvent& event) {
    const auto take = [](int64_t from, int64_t& to) {
      if (to < 0) to = from;
    };
    take(parent.rank, event.rank);
    take(parent.channel, event.channel);
    take(parent.peer, event.peer);
    take(parent.step, event.step);
    if (event.direction == NcclDirection::kNone) event.direction = parent.direction;
    event.communicator = parent.communicator;
    event.algorithm = parent.algorithm;
    event.protocol = parent.protocol;
  }

  static void ReadArgs(const std::vector<TraceArg>& args, NcclEvent& event) {
    ReadNumber(args, "Rank", event.rank);
    ReadNumber(args, "Channel", event.channel);
    ReadNumber(args, "Peer", event.peer);
    ReadNumber(args, "Step", event.step);
    ReadNumber(args, "Steps", event.steps);
    ReadNumber(args, "nChannels", event.channels);
    ReadNumber(args, "nMaxChannels", event.channels);  // before 2.26
    ReadNumber(args, "ChunkSize", event.chunk_bytes);
    ReadNumber(args, "transSize", event.bytes);
    ReadNumber(args, "size", event.bytes);
    ReadNumber(args, "Count", event.count);
    ReadText(args, "CommHash", event.communicator);
    ReadText(args, "Algorithm", event.algorithm);
    ReadText(args, "Protocol", event.protocol);
    ReadText(args, "Datatype", event.datatype);
    const int64_t size = NcclTypeBytes(event.datatype);
    int64_t bytes = 0;
    if (event.count >= 0 && size > 0 && !__builtin_mul_overflow(event.count, size, &bytes)) {
      event.bytes = bytes;
    }
  }

  // By channel, kind, direction and peer, in this order.
  using Row = std::tuple<int64_t, int, int, int64_t>;

  static Row RowOf(const NcclEvent& event) {
    const auto direction = static_cast<int>(event.direction);
    switch (event.kind) {
      case NcclEventKind::kGroupCall:
      case NcclEventKind::kCall:
      case NcclEventKind::kLaunch:
      case NcclEventKind::kGroup:
        return {-3, 0, 0, 0};
      case NcclEventKind::kCollective:
      case NcclEventKind::kPointToPoint:
      case NcclEventKind::kCopyEngine:
        return {-2, 0, 0, 0};
      case NcclEventKind::kKernel:
        return {event.channel, 0, 0, 0};
      case NcclEventKind::kProxyOp:
        return {event.channel, 1, direction, event.peer};
      case NcclEventKind::kStep:
      case NcclEventKind::kWait:
      case NcclEventKind::kNetwork:
        return {event.channel, 2, direction, event.peer};
      default:
        return {-2, 1, 0, 0};
    }
  }

  static std::string RowName(const Row& row) {
    const auto [channel, kind, direction, peer] = row;
    if (channel == -3) return "calls";
    if (channel == -2) return kind == 0 ? "collectives" : "proxy thread";
    const std::string place = channel < 0 ? "no channel" : absl::StrCat("channel ", channel);
    if (kind == 0) return absl::StrCat(place, " kernel");
    const bool send = direction == static_cast<int>(NcclDirection::kSend);
    return absl::StrCat(place,
                        direction == 0 ? ""
                        : send         ? " send"
                                       : " receive",
                        peer < 0 ? "" : absl::StrCat(send ? " to " : " from ", peer),
                        kind == 1 ? "" : " steps");
  }

  // Of the old profile one process; of the plugin's, those of the file, by rank if it is one.
  std::string ProcessName(const std::string& process, const std::set<int64_t>& ranks) const {
    if (trace_.dialect == NcclTraceDialect::kProxyProfile) return "NCCL proxy";
    const std::string number = absl::StrCat("process ", process.empty() ? "unknown" : process);
    if (ranks.empty()) return number;
    if (ranks.size() > 8) return absl::StrCat(ranks.size(), " ranks (", number, ")");
    return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "), " (",
                        number, ")");
  }

  void PlaceOnTracks() {
    const bool profile = trace_.dialect == NcclTraceDialect::kProxyProfile;
    std::map<std::string, std::map<Row, int64_t>> rows;
    std::map<std::string, std::set<int64_t>> ranks;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const std::string process = profile ? "" : process_of_[i];
      rows[process].emplace(RowOf(trace_.events[i]), 0);
      if (trace_.events[i].rank >= 0) ranks[process].insert(trace_.events[i].rank);
    }
    std::map<std::string, std::pair<int64_t, std::string>> processes;
    std::set<int64_t> taken;
    for (auto& [process, of_process] : rows) {
      int64_t number = 0, thread = 0;
      if (!absl::SimpleAtoi(process, &number)) number = 0;
      while (!taken.insert(number).second) ++number;
      processes[process] = {number, ProcessName(process, ranks[process])};
      for (auto& [row, index] : of_process) index = thread++;
    }
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const std::string process = profile ? "" : process_of_[i];
      const Row row = RowOf(trace_.events[i]);
      const auto& [number, name] = processes[process];
      trace_.timeline.spans[i].track =
          builder_.Track(number, rows[process][row], name, RowName(row));
    }
  }

  TraceFile file_;
  TimelineBuilder builder_;
  NcclTrace trace_;
  std::vector<std::string> process_of_;  // of each span
  absl::flat_hash_map<std::string, std::vector<Around>> around_;
  std::map<std::tuple<std::string, int32_t, std::string>, int32_t> step_of_;
};

}  // namespace

absl::StatusOr<NcclTrace> ReadNcclTrace(absl::string_view text, absl::string_view what) {
  ASSIGN_OR_RETURN(TraceFile file, ReadTraceFile(text, what));
  return NcclReader(std::move(file)).Run(what);
}

}  // namespace plancast
