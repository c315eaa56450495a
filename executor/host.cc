#include "executor/host.h"

#include <algorithm>

namespace plancast {

Launch LaunchOf(const HostParams& host, const TaskTable& table, const int64_t* end, int32_t task,
                int32_t launches) {
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

int64_t LaunchTail(const HostParams& host, const TaskTable& table, const int64_t* start,
                   const int64_t* end, int32_t task, int32_t launches, int64_t duration) {
  if (host.launch_ps == 0 || launches < 2) return 0;
  const Launch launch = LaunchOf(host, table, end, task, launches);
  if (launch.last_ps != end[task]) return 0;
  return std::max<int64_t>(end[task] - start[task] - duration, 0);
}

}  // namespace plancast
