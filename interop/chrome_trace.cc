#include "interop/chrome_trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace plancast {
namespace {

constexpr std::array<absl::string_view, kNumStreams> kStreamNames = {"compute",
                                                                     "tensor-parallel comm",
                                                                     "data-parallel comm",
                                                                     "send to next stage",
                                                                     "recv from previous stage",
                                                                     "send to previous stage",
                                                                     "recv from next stage"};
constexpr std::array<absl::string_view, kNumPurposes> kPurposeNames = {
    "forward", "backward", "recompute", "tp", "dp", "pp", "cp", "ep", "optimizer", "other"};
// Colour names of the format, one a purpose.
constexpr std::array<absl::string_view, kNumPurposes> kColours = {"thread_state_running",
                                                                  "thread_state_iowait",
                                                                  "thread_state_uninterruptible",
                                                                  "rail_animation",
                                                                  "rail_load",
                                                                  "rail_response",
                                                                  "rail_idle",
                                                                  "rail_idle",
                                                                  "good",
                                                                  "generic_work"};
// Threads of one stream are numbered stream * kLanes + lane.
constexpr int kLanes = 100;

std::string Escape(absl::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string Microseconds(int64_t ps) {
  return absl::StrFormat("%d.%06d", ps / 1'000'000, ps % 1'000'000);
}

class Writer {
 public:
  Writer(const ExecutionGraph& graph, const SimResult& result) : graph_(graph), result_(result) {}

  std::string Write() {
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    Processes();
    Slices();
    Flows();
    for (size_t c = 0; c < result_.classes.size(); ++c) Memory(static_cast<int32_t>(c));
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  void Event(absl::string_view event) {
    absl::StrAppend(&text_, first_ ? "\n" : ",\n", event);
    first_ = false;
  }

  int64_t Pid(int32_t device_class) const { return result_.classes[device_class].representative; }

  void Processes() {
    for (size_t c = 0; c < result_.classes.size(); ++c) {
      const DeviceClassResult& device = result_.classes[c];
      Event(absl::StrFormat(
          R"js({"ph":"M","name":"process_name","pid":%d,"args":{"name":"%s (GPU %d, one of %d)"}})js",
          device.representative, Escape(device.name), device.representative, device.devices));
      Event(absl::StrFormat(
          R"({"ph":"M","name":"process_sort_index","pid":%d,"args":{"sort_index":%d}})",
          device.representative, c));
    }
  }

  // The thread of each slice: the first lane of its stream that is free.
  void AssignLanes() {
    std::vector<int> order(result_.slices.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return result_.slices[a].start_ps < result_.slices[b].start_ps;
    });
    std::map<std::pair<int32_t, int>, std::vector<int64_t>> free_at;
    thread_.resize(order.size());
    for (int i : order) {
      const Slice& slice = result_.slices[i];
      const int stream = static_cast<int>(slice.stream);
      std::vector<int64_t>& lanes = free_at[{slice.device_class, stream}];
      size_t lane = 0;
      while (lane < lanes.size() && lanes[lane] > slice.start_ps) ++lane;
      if (lane == lanes.size()) lanes.push_back(0);
      lanes[lane] = slice.end_ps;
      thread_[i] = stream * kLanes + static_cast<int>(lane);
    }
    for (const auto& [key, lanes] : free_at) {
      for (size_t lane = 0; lane < lanes.size(); ++lane) {
        const int thread = key.second * kLanes + static_cast<int>(lane);
        Event(absl::StrFormat(
            R"({"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":"%s%s"}})",
            Pid(key.first), thread, kStreamNames[key.second],
            lane == 0 ? "" : absl::StrCat(" ", lane + 1)));
        Event(absl::StrFormat(
            R"({"ph":"M","name":"thread_sort_index","pid":%d,"tid":%d,"args":{"sort_index":%d}})",
            Pid(key.first), thread, thread));
      }
    }
  }

  void Slices() {
    AssignLanes();
    for (size_t i = 0; i < result_.slices.size(); ++i) {
      const Slice& slice = result_.slices[i];
      const Block& block = graph_.blocks[slice.block];
      const int purpose = static_cast<int>(slice.purpose);
      Event(absl::StrFormat(
          R"({"ph":"X","name":"%s","cat":"%s","cname":"%s","pid":%d,"tid":%d,"ts":%s,"dur":%s,)"
          R"("args":{"block":"%s","layer":%d,"micro_batch":%d,"chunk":%d%s}})",
          Escape(block.label[slice.task]), kPurposeNames[purpose], kColours[purpose],
          Pid(slice.device_class), thread_[i], Microseconds(slice.start_ps),
          Microseconds(slice.end_ps - slice.start_ps), Escape(block.name), slice.layer,
          slice.micro_batch, slice.chunk, Detail(block, slice.task)));
    }
  }

  // What ran: the kernel, or the collective and its bytes.
  std::string Detail(const Block& block, int32_t task) const {
    if (block.kind[task] == TaskKind::kKernel) {
      const KernelSpec& kernel = graph_.kernels[block.spec[task]];
      return absl::StrFormat(R"(,"kernel":"%s","gflop":%g)", Escape(kernel.DebugString()),
                             kernel.flops * 1e-9);
    }
    const CommSpec& comm = graph_.comms[block.spec[task]];
    return absl::StrFormat(R"(,"collective":"%s","bytes":%d)", CollectiveKindName(comm.kind),
                           comm.bytes);
  }

  // Both ends of a message run in the same interval; sends and receives of one
  // interval and micro-batch are matched in the order of the stages.
  void Flows() {
    using Key = std::tuple<int64_t, int64_t, int32_t, bool>;  // start, end, micro-batch, forward
    std::map<Key, std::pair<std::vector<size_t>, std::vector<size_t>>> ends;
    for (size_t i = 0; i < result_.slices.size(); ++i) {
      const Slice& s = result_.slices[i];
      const bool to_next = s.stream == StreamKind::kSendNext || s.stream == StreamKind::kRecvPrev;
      const bool send = s.stream == StreamKind::kSendNext || s.stream == StreamKind::kSendPrev;
      if (!send && s.stream != StreamKind::kRecvPrev && s.stream != StreamKind::kRecvNext) continue;
      auto& pair = ends[{s.start_ps, s.end_ps, s.micro_batch, to_next}];
      (send ? pair.first : pair.second).push_back(i);
    }
    int64_t id = 0;
    for (const auto& [key, pair] : ends) {
      for (size_t i = 0; i < std::min(pair.first.size(), pair.second.size()); ++i) {
        const size_t from = pair.first[i], to = pair.second[i];
        Event(FlowEnd("s", ++id, from));
        Event(FlowEnd("f", id, to));
      }
    }
  }

  std::string FlowEnd(absl::string_view phase, int64_t id, size_t slice) const {
    const Slice& s = result_.slices[slice];
    return absl::StrFormat(
        R"({"ph":"%s","name":"message","cat":"pp","id":%d,"pid":%d,"tid":%d,"ts":%s%s})", phase, id,
        Pid(s.device_class), thread_[slice], Microseconds(s.start_ps),
        phase == "f" ? R"(,"bp":"e")" : "");
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
    Event(absl::StrFormat(
        R"js({"ph":"C","name":"memory (GiB)","pid":%d,"ts":%s,"args":{"allocated":%.4f}})js", pid,
        Microseconds(ps), static_cast<double>(bytes) / (1 << 30)));
  }

  const ExecutionGraph& graph_;
  const SimResult& result_;
  std::vector<int> thread_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

std::string ChromeTrace(const ExecutionGraph& graph, const SimResult& result) {
  return Writer(graph, result).Write();
}

}  // namespace plancast
