#include "interop/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/enum_names.h"
#include "interop/timeline/timeline_json.h"

namespace plancast {
namespace {

// Titles of tracks, for people.
constexpr auto kTitles = NamesOf<StreamKind>(
    "compute", "tensor-parallel comm", "expert-parallel comm", "data-parallel comm",
    "send to next stage", "recv from previous stage", "send to previous stage",
    "recv from next stage", "sum over replicas", "copy to host", "copy from host",
    "copy to another stage", "copy from another stage", "send forward to previous stage",
    "recv forward from next stage", "send back to next stage", "recv back from previous stage",
    "comm of all stages");
// Colour names of the format, one a purpose.
constexpr auto kColours = NamesOf<Purpose>(
    "thread_state_running", "thread_state_iowait", "thread_state_uninterruptible", "rail_animation",
    "rail_load", "rail_response", "rail_idle", "rail_idle", "rail_idle", "good", "generic_work");

class Builder {
 public:
  Builder(const ExecutionGraph& graph, const SimResult& result) : graph_(graph), result_(result) {}

  Timeline Build() {
    Tracks();
    Spans();
    Flows();
    for (size_t c = 0; c < result_.classes.size(); ++c) Memory(static_cast<int32_t>(c));
    return std::move(timeline_);
  }

 private:
  // By device and stream.
  void Tracks() {
    for (const Slice& slice : result_.slices) tracks_[{slice.device_class, slice.stream}] = 0;
    for (auto& [key, track] : tracks_) {
      const DeviceClassResult& device = result_.classes[key.first];
      track = static_cast<int32_t>(timeline_.tracks.size());
      timeline_.tracks.push_back({device.representative, static_cast<int>(key.second),
                                  absl::StrFormat("%s (GPU %d, one of %d)", device.name,
                                                  device.representative, device.devices),
                                  std::string(kTitles[key.second])});
    }
  }

  void Spans() {
    timeline_.spans.reserve(result_.slices.size());
    for (const Slice& slice : result_.slices) {
      const Block& block = graph_.blocks[slice.block];
      TimelineSpan span;
      span.name = block.label[slice.task];
      span.category = std::string(kPurposeNames[slice.purpose]);
      span.colour = std::string(kColours[slice.purpose]);
      span.track = tracks_.at({slice.device_class, slice.stream});
      span.start_ps = slice.start_ps;
      span.duration_ps = slice.end_ps - slice.start_ps;
      span.args = {{"block", block.name, true},
                   {"layer", absl::StrCat(slice.layer)},
                   {"micro_batch", absl::StrCat(slice.micro_batch)},
                   {"chunk", absl::StrCat(slice.chunk)}};
      Detail(block, slice.task, span.args);
      timeline_.spans.push_back(std::move(span));
    }
  }

  // What ran: the kernel, or the collective and its bytes.
  void Detail(const Block& block, int32_t task, std::vector<TraceArg>& args) const {
    if (block.kind[task] == TaskKind::kKernel) {
      const KernelSpec& kernel = graph_.kernels[block.spec[task]];
      args.push_back({"kernel", kernel.DebugString(), true});
      args.push_back({"gflop", absl::StrFormat("%g", kernel.flops * 1e-9)});
      return;
    }
    const CommSpec& comm = graph_.comms[block.spec[task]];
    args.push_back({"collective", std::string(kCollectiveKindNames[comm.kind]), true});
    args.push_back({"bytes", absl::StrCat(comm.bytes)});
  }

  // Both ends of a message run in the same interval; sends and receives of one
  // interval and micro-batch are matched in the order of the stages.
  void Flows() {
    enum class Way : uint8_t { kNext, kPrevious, kPeer };
    using Key = std::tuple<int64_t, int64_t, int32_t, Way>;  // start, end, micro-batch
    std::map<Key, std::pair<std::vector<int32_t>, std::vector<int32_t>>> ends;
    for (size_t i = 0; i < result_.slices.size(); ++i) {
      const Slice& s = result_.slices[i];
      Way way = Way::kNext;
      switch (s.stream) {
        case StreamKind::kSendNext:
        case StreamKind::kRecvPrev:
        case StreamKind::kBackwardToNext:
        case StreamKind::kBackwardFromPrev:
          break;
        case StreamKind::kSendPrev:
        case StreamKind::kRecvNext:
        case StreamKind::kForwardToPrev:
        case StreamKind::kForwardFromNext:
          way = Way::kPrevious;
          break;
        case StreamKind::kPeerOut:
        case StreamKind::kPeerIn:
          way = Way::kPeer;
          break;
        default:
          continue;
      }
      const bool send = Sends(s.stream);
      auto& pair = ends[{s.start_ps, s.end_ps, s.micro_batch, way}];
      (send ? pair.first : pair.second).push_back(static_cast<int32_t>(i));
    }
    for (const auto& [key, pair] : ends) {
      const int64_t start = std::get<0>(key);
      for (size_t i = 0; i < std::min(pair.first.size(), pair.second.size()); ++i) {
        timeline_.flows.push_back({"message", "pp", pair.first[i], pair.second[i], start, start});
      }
    }
  }

  // Allocations at the start of a task, frees at its end.
  void Memory(int32_t device_class) {
    const DeviceClassResult& device = result_.classes[device_class];
    int64_t live = 0;
    for (int64_t bytes : graph_.programs[device.program].static_bytes) live += bytes;
    std::map<int64_t, int64_t> changes;
    for (const Slice& slice : result_.slices) {
      if (slice.device_class != device_class) continue;
      const std::vector<MemoryEvent>& events = graph_.blocks[slice.block].memory;
      auto event =
          std::lower_bound(events.begin(), events.end(), slice.task,
                           [](const MemoryEvent& e, int32_t task) { return e.task < task; });
      for (; event != events.end() && event->task == slice.task; ++event) {
        changes[event->after ? slice.end_ps : slice.start_ps] += event->delta;
      }
    }
    Counter(device.representative, 0, live);
    for (const auto& [ps, delta] : changes) {
      if (delta == 0) continue;
      live += delta;
      Counter(device.representative, ps, live);
    }
  }

  void Counter(int64_t pid, int64_t ps, int64_t bytes) {
    timeline_.counters.push_back(
        {pid, "memory (GiB)", ps, {{"allocated", static_cast<double>(bytes) / (1 << 30)}}});
  }

  const ExecutionGraph& graph_;
  const SimResult& result_;
  Timeline timeline_;
  std::map<std::pair<int32_t, StreamKind>, int32_t> tracks_;
};

}  // namespace

Timeline ForecastTimeline(const ExecutionGraph& graph, const SimResult& result) {
  return Builder(graph, result).Build();
}

std::string ChromeTrace(const ExecutionGraph& graph, const SimResult& result) {
  return TimelineJson(ForecastTimeline(graph, result));
}

}  // namespace plancast
