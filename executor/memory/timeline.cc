#include "executor/memory/timeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/memory/replay.h"

namespace plancast {
namespace {

// Keeps the highest and the last point of each piece of the issue order.
class Thinner {
 public:
  Thinner(int64_t issued, int64_t max_points)
      : pieces_(std::max<int64_t>(1, (max_points - 2) / 2)),
        issued_(std::max<int64_t>(1, issued)) {}

  void Add(const MemoryPoint& point) {
    const int64_t piece = std::min(pieces_ - 1, point.issued * pieces_ / issued_);
    if (piece != piece_) Flush();
    piece_ = piece;
    if (!any_ || point.bytes.total() > highest_.bytes.total()) highest_ = point;
    last_ = point;
    any_ = true;
  }
  void Flush() {
    if (!any_) return;
    kept_.push_back(highest_);
    const bool same = last_.issued == highest_.issued && last_.instance == highest_.instance &&
                      last_.bytes.total() == highest_.bytes.total();
    if (!same) kept_.push_back(last_);
    any_ = false;
  }
  std::vector<MemoryPoint> Take() && { return std::move(kept_); }

 private:
  const int64_t pieces_, issued_;
  int64_t piece_ = 0;
  bool any_ = false;
  MemoryPoint highest_, last_;
  std::vector<MemoryPoint> kept_;
};

MemoryPoint After(const MemoryPoint& before, const KindBytes& change, int64_t times, int64_t issued,
                  int32_t instance) {
  MemoryPoint point = before;
  point.bytes.Add(change, times);
  point.issued += issued;
  point.instance = instance;
  return point;
}

// Calls `add(point)` for each, one at a time: there may be far more than are kept.
template <typename Add>
void ForEachPoint(const ExecutionGraph& graph, const Program& program,
                  const std::vector<BlockProfile>& profiles, bool every_layer, const Add& add) {
  MemoryPoint now;
  now.bytes = StaticBytes(program);
  int64_t issued = now.issued;  // of the last point
  add(now);
  const auto add_point = [&](const MemoryPoint& point) {
    issued = point.issued;
    add(point);
  };
  for (size_t i = 0; i < program.instances.size(); ++i) {
    const Instance& instance = program.instances[i];
    const Block& block = graph.blocks[instance.block];
    const BlockProfile& profile = profiles[instance.block];
    const auto index = static_cast<int32_t>(i);
    const int64_t steps = every_layer ? instance.layer_count : 1;
    const int64_t layers = every_layer ? 1 : instance.layer_count;
    for (int64_t step = 0; step < steps; ++step) {
      const MemoryPoint end = After(now, profile.net, layers, block.size() * layers, index);
      if (profile.live.high > 0) {
        const int64_t layer = profile.live.net > 0 ? layers - 1 : 0;
        const int64_t task = block.memory[profile.high_events - 1].task;
        MemoryPoint high = After(now, profile.net, layer, block.size() * layer + task, index);
        high.bytes.Add(profile.at_high);
        add_point(high);
      }
      if (!block.memory.empty()) add_point(end);
      now = end;
    }
  }
  if (issued != now.issued) add(now);
}

}  // namespace

MemoryTimeline MemoryOverIssueOrder(const ExecutionGraph& graph, int32_t program,
                                    const TimelineOptions& options) {
  MemoryTimeline timeline;
  const Program& of = graph.programs[program];
  const std::vector<BlockProfile> profiles = ProfileBlocks(graph, AllocatorParams());
  const auto for_each = [&](const auto& add) {
    ForEachPoint(graph, of, profiles, options.every_layer, add);
  };
  int64_t count = 0, issued = 0;
  for_each([&](const MemoryPoint& point) {
    ++count;
    issued = point.issued;
  });
  if (count <= options.max_points) {
    for_each([&](const MemoryPoint& point) { timeline.points.push_back(point); });
  } else {
    Thinner thinner(issued, options.max_points);
    bool first = true;
    for_each([&](const MemoryPoint& point) {
      if (first) {
        timeline.points.push_back(point);
      } else {
        thinner.Add(point);
      }
      first = false;
    });
    thinner.Flush();
    for (MemoryPoint& point : std::move(thinner).Take()) timeline.points.push_back(point);
  }
  for (size_t i = 0; i < timeline.points.size(); ++i) {
    if (timeline.points[i].bytes.total() > timeline.points[timeline.peak].bytes.total()) {
      timeline.peak = i;
    }
  }
  return timeline;
}

}  // namespace plancast
