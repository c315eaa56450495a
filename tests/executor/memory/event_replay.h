#ifndef PLANCAST_TESTS_EXECUTOR_MEMORY_EVENT_REPLAY_H_
#define PLANCAST_TESTS_EXECUTOR_MEMORY_EVENT_REPLAY_H_

#include <cstdint>
#include <vector>

#include "executor/memory/block_profile.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// One event of a program with all its layers unfolded, and what is alive after.
struct ReplayedEvent {
  int64_t task = 0;  // position in the issue order
  bool after = false;
  KindBytes live;
};

// The plain replay that block profiles must agree with.
inline std::vector<ReplayedEvent> ReplayEvents(const ExecutionGraph& graph, int32_t program) {
  KindBytes live;
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    live.of[kind] = graph.programs[program].static_bytes[kind];
  }
  std::vector<ReplayedEvent> events;
  int64_t issued = 0;
  for (const Instance& instance : graph.programs[program].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
      for (const MemoryEvent& event : block.memory) {
        live.of[static_cast<int>(event.kind)] += event.delta;
        events.push_back({issued + event.task, event.after, live});
      }
      issued += block.size();
    }
  }
  return events;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_MEMORY_EVENT_REPLAY_H_
