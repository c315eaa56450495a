#ifndef PLANCAST_EXECUTOR_HOST_H_
#define PLANCAST_EXECUTOR_HOST_H_

#include <cstdint>

#include "executor/task_table.h"

namespace plancast {

// The host of each device launches tasks in issue order; picoseconds.
struct HostParams {
  int64_t start_ps = 0;   // before the first launch
  int64_t launch_ps = 0;  // per launch
  int64_t sync_ps = 0;    // after a task that the host waits for
};

// What the host allows for a task, and what the launch waited for.
struct Launch {
  bool known = true;
  int32_t sync_task = -1;             // the host waited for it before; -1: the beginning
  int64_t released_ps = 0;            // when the host went on
  int64_t first_ps = 0, last_ps = 0;  // first and last kernel of the task launched
};

// `end` holds the end of every task that is over, and a negative number for
// others. `launches`: of the task itself.
inline Launch LaunchOf(const HostParams& host, const TaskTable& table, const int64_t* end,
                       int32_t task, int32_t launches) {
  Launch launch;
  launch.released_ps = host.start_ps;
  int32_t before = 0;
  if (!table.sync_tasks.empty() && table.syncs_before[task] > 0) {
    launch.sync_task = table.sync_tasks[table.syncs_before[task] - 1];
    if (end[launch.sync_task] < 0) {
      launch.known = false;
      return launch;
    }
    launch.released_ps = end[launch.sync_task] + host.sync_ps;
    before = table.launches[launch.sync_task];
  }
  const int64_t last = table.launches[task] - before;
  launch.last_ps = launch.released_ps + last * host.launch_ps;
  launch.first_ps =
      launch.released_ps + (launches > 0 ? last - launches + 1 : last) * host.launch_ps;
  return launch;
}

// The part at the end of a kernel in which it only waited for launches of its own.
int64_t LaunchTail(const HostParams& host, const TaskTable& table, const int64_t* start,
                   const int64_t* end, int32_t task, int32_t launches, int64_t duration);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_HOST_H_
