#include "executor/simulate/host_clock.h"

#include <algorithm>

namespace plancast {

HostClock::HostClock(const SimInput& in, const Streams& streams, const Events& events)
    : in_(in), streams_(streams), events_(events), last_wait_ps_(in.graph.programs.size(), 0) {
  for (size_t p = 0; p < in.graph.programs.size(); ++p) {
    matters_.push_back(in.hosts[p].Costs() || in.index.program(static_cast<int32_t>(p)).syncs);
  }
}

bool HostClock::Find(int32_t entity, const StreamCursor& at, int32_t task, const BlockIndex& index,
                     OfLayer* clock, TaskRef* blocker) const {
  const int32_t program = in_.ProgramOf(entity);
  const HostParams& host = in_.hosts[program];
  // Until the host waits again, its clock goes on by launches.
  const bool synced = index.syncs && (at.layer > 0 || index.sync_before[task] >= 0);
  if (clock->known && !synced) return true;
  const int32_t from = synced ? task : 0;
  const Launch launch = LaunchOf(host, in_.index, program, {at.instance, at.layer, from},
                                 [&](const TaskRef& ref) { return streams_.EndOf(entity, ref); });
  if (!launch.known) {
    *blocker = launch.sync;
    return false;
  }
  clock->known = !synced;
  clock->zero = launch.last_ps - host.launch_ps * index.launches[from + 1];
  return true;
}

bool HostClock::FindCondition(int32_t entity, const TaskRef& layer, const BlockIndex& index,
                              const LayerCosts& costs, int64_t* host) const {
  *host = 0;
  if (!costs.hosted) return true;
  const Launch launch = LaunchOf(in_.HostOf(entity), in_.index, in_.ProgramOf(entity), layer,
                                 [&](const TaskRef& ref) { return streams_.EndOf(entity, ref); });
  if (!launch.known) return false;
  const int64_t clock =
      launch.last_ps - costs.launch_ps * (index.launches[1] - index.launches[0]) - events_.now();
  *host = std::max(clock, -costs.launch_ps * index.launches.back());
  return true;
}

bool HostClock::KeepsPace(int32_t program, int32_t first, int32_t period, int64_t period_ps,
                          int64_t since_ps) const {
  const HostParams& host = in_.hosts[program];
  const int64_t launches = in_.index.LaunchesBefore(program, {first + period, 0, 0}) -
                           in_.index.LaunchesBefore(program, {first, 0, 0});
  const std::vector<int32_t>& graphs = in_.index.program(program).graphs;
  const int64_t own = graphs.empty() ? 0 : graphs[first + period] - graphs[first];
  const int64_t launching = launches * host.launch_ps + own * host.graph_launch_ps;
  // Further ahead each time, so it must not have mattered in any that was alike.
  return launching == period_ps || (launching < period_ps && last_wait_ps_[program] < since_ps);
}

}  // namespace plancast
