#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "executor/memory/timeline.h"

namespace plancast {
namespace {

// Block, micro-batch, chunk, layer.
using Run = std::tuple<int32_t, int32_t, int32_t, int32_t>;
using Span = std::pair<int64_t, int64_t>;  // begin, end

absl::flat_hash_map<Run, Span> ComputeSpans(const SimResult& result, int32_t device_class) {
  absl::flat_hash_map<Run, Span> spans;
  for (const Slice& slice : result.slices) {
    if (slice.device_class != device_class || slice.stream != StreamKind::kCompute) continue;
    const Run run(slice.block, slice.micro_batch, slice.chunk, slice.layer);
    const auto [it, inserted] = spans.try_emplace(run, slice.start_ps, slice.end_ps);
    if (inserted) continue;
    it->second.first = std::min(it->second.first, slice.start_ps);
    it->second.second = std::max(it->second.second, slice.end_ps);
  }
  return spans;
}

// From the beginning of its first layer to the end of its last; what does not
// compute happens when the instance before it ends.
Span SpanOf(const Block& block, const Instance& instance,
            const absl::flat_hash_map<Run, Span>& spans, int64_t now) {
  Span span(INT64_MAX, now);
  const auto add = [&](int32_t micro_batch, int32_t chunk, int32_t layer) {
    const auto it = spans.find(Run(instance.block, micro_batch, chunk, layer));
    if (it == spans.end()) return;
    span.first = std::min(span.first, it->second.first);
    span.second = std::max(span.second, it->second.second);
  };
  for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
    add(instance.micro_batch, instance.chunk, LayerOf(block, instance, layer));
    if (!instance.pairs()) continue;
    const Instance::Forward& forward = instance.forward;
    add(forward.micro_batch, forward.chunk, LayerOf(block, instance, layer, /*forward=*/true));
  }
  span.first = span.first == INT64_MAX ? now : std::max(span.first, now);
  return span;
}

}  // namespace

std::vector<int64_t> TimesOf(const MemoryTimeline& timeline, const ExecutionGraph& graph,
                             int32_t program, const SimResult& result, int32_t device_class) {
  const absl::flat_hash_map<Run, Span> spans = ComputeSpans(result, device_class);
  const std::vector<Instance>& instances = graph.programs[program].instances;
  std::vector<int64_t> times;
  int64_t now = 0, issued = 0;
  size_t next = 0;  // point
  while (next < timeline.points.size() && timeline.points[next].instance < 0) {
    times.push_back(0);
    ++next;
  }
  for (size_t i = 0; i < instances.size() && next < timeline.points.size(); ++i) {
    const Span span = SpanOf(graph.blocks[instances[i].block], instances[i], spans, now);
    const int64_t tasks =
        int64_t{graph.blocks[instances[i].block].size()} * std::max(instances[i].layer_count, 1);
    for (;
         next < timeline.points.size() && timeline.points[next].instance == static_cast<int32_t>(i);
         ++next) {
      const double share = tasks > 0 ? static_cast<double>(timeline.points[next].issued - issued) /
                                           static_cast<double>(tasks)
                                     : 1.0;
      times.push_back(span.first +
                      static_cast<int64_t>(share * static_cast<double>(span.second - span.first)));
    }
    now = span.second;
    issued += tasks;
  }
  return times;
}

}  // namespace plancast
