#include "executor/host.h"

#include <algorithm>

namespace plancast {

int64_t LaunchTail(const HostParams& host, const TaskTable& table, const int64_t* start,
                   const int64_t* end, int32_t task, int32_t launches, int64_t duration) {
  if (host.launch_ps == 0 || launches < 2) return 0;
  const Launch launch = LaunchOf(host, table, end, task, launches);
  if (launch.last_ps != end[task]) return 0;
  return std::max<int64_t>(end[task] - start[task] - duration, 0);
}

}  // namespace plancast
