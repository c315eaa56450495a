#ifndef PLANCAST_EXECUTOR_SIMULATE_INDEX_HOST_H_
#define PLANCAST_EXECUTOR_SIMULATE_INDEX_HOST_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/index/task_index.h"

namespace plancast {

// The host of each device launches tasks in issue order; picoseconds.
struct HostParams {
  int64_t start_ps = 0;   // before the first launch
  int64_t launch_ps = 0;  // per launch
  int64_t sync_ps = 0;    // after a task that the host waits for
  // Launch captured instances as CUDA graphs, at this cost each.
  bool cuda_graphs = false;
  int64_t graph_launch_ps = 0;

  // Whether a launch takes any time.
  bool Costs() const { return launch_ps > 0 || (cuda_graphs && graph_launch_ps > 0); }
};

// What the host allows for a task, and what the launch waited for.
struct Launch {
  bool known = true;
  TaskRef sync;                       // the host waited for it before; instance -1: the beginning
  int64_t released_ps = 0;            // when the host went on
  int64_t first_ps = 0, last_ps = 0;  // first and last kernel of the task launched
};

// `end_of(TaskRef)`: the end of a task that is over, and a negative number for
// others.
template <typename EndOf>
Launch LaunchOf(const HostParams& host, const TaskIndex& index, int32_t program, const TaskRef& ref,
                const EndOf& end_of) {
  Launch launch;
  launch.released_ps = host.start_ps;
  const int64_t before = index.LaunchesBefore(program, ref);
  const int32_t own = index.LaunchesOf(program, ref);
  int64_t released = 0;  // launches until the host went on
  if (index.program(program).syncs) launch.sync = index.SyncBefore(program, ref);
  if (launch.sync.instance >= 0) {
    const int64_t end = end_of(launch.sync);
    if (end < 0) {
      launch.known = false;
      return launch;
    }
    launch.released_ps = end + host.sync_ps;
    released = index.LaunchesBefore(program, launch.sync) + index.LaunchesOf(program, launch.sync);
  }
  if (const std::vector<int32_t>& graphs = index.program(program).graphs; !graphs.empty()) {
    const int32_t released_graphs = launch.sync.instance < 0 ? 0 : graphs[launch.sync.instance];
    launch.released_ps += (graphs[ref.instance] - released_graphs) * host.graph_launch_ps;
  }
  const int64_t last = before + own - released;
  launch.last_ps = launch.released_ps + last * host.launch_ps;
  const int64_t first = before - released + index.FirstLaunchOf(program, ref);
  launch.first_ps = launch.released_ps + first * host.launch_ps;
  return launch;
}

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_INDEX_HOST_H_
