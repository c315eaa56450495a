#ifndef PLANCAST_EXECUTOR_MEMORY_TIMELINE_H_
#define PLANCAST_EXECUTOR_MEMORY_TIMELINE_H_

#include <cstdint>
#include <vector>

#include "executor/executor.h"
#include "executor/memory/block_profile.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Live memory after so many tasks of the program have been issued.
struct MemoryPoint {
  int64_t issued = 0;     // tasks, layers unfolded
  int32_t instance = -1;  // whose last; -1: none has run
  KindBytes bytes;
};

struct TimelineOptions {
  // A point for the highest moment of every layer and for its end, instead of
  // one for all layers of an instance.
  bool every_layer = false;
  // At most so many points, at least 4: the highest and the last of equal pieces
  // of the program stand for what is left out. The peak is always there.
  int64_t max_points = 2000;
};

// Memory over the issue order. Costs a step an instance (or layer).
struct MemoryTimeline {
  std::vector<MemoryPoint> points;  // ascending `issued`; the first has static memory alone
  size_t peak = 0;                  // the first of the highest
};
MemoryTimeline MemoryOverIssueOrder(const ExecutionGraph& graph, int32_t program,
                                    const TimelineOptions& options = {});

// When the points come, picoseconds, from the slices of a simulation; ascending,
// and only for drawing: tasks of a layer are spread evenly over it, and
// communications take no time of their own.
std::vector<int64_t> TimesOf(const MemoryTimeline& timeline, const ExecutionGraph& graph,
                             int32_t program, const SimResult& result, int32_t device_class);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_TIMELINE_H_
