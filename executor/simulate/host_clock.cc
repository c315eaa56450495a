#include "executor/simulate/host_clock.h"

#include <algorithm>

namespace plancast {

HostClock::HostClock(const SimInput& in, const Streams& streams, const Events& events)
    : in_(in),
      streams_(streams),
      events_(events),
      released_(in.sim.entities.size(), {-1, Streams::kUnknown}),
      last_wait_ps_(in.graph.programs.size(), 0) {
  for (size_t p = 0; p < in.graph.programs.size(); ++p) {
    matters_.push_back(in.hosts[p].Costs() || in.index.program(static_cast<int32_t>(p)).syncs);
  }
}

bool HostClock::FindZero(int32_t entity, int32_t instance, int32_t layer, int64_t* zero,
                         TaskRef* blocker) {
  const int32_t program = in_.ProgramOf(entity);
  const ProgramIndex& index = in_.index.program(program);
  const HostParams& host = in_.hosts[program];
  const int64_t launches = index.launches_before[instance] +
                           int64_t{in_.index.BlockAt(program, instance).launches.back()} * layer;
  const int64_t graphs = index.graphs.empty() ? 0 : index.graphs[instance] * host.graph_launch_ps;
  Released& released = released_[entity];
  if (released.zero == Streams::kUnknown || released.sync != index.sync_before[instance]) {
    const Launch launch = LaunchOf(host, in_.index, program, {instance, layer, 0},
                                   [&](const TaskRef& ref) { return streams_.EndOf(entity, ref); });
    if (!launch.known) {
      *blocker = launch.sync;
      return false;
    }
    const BlockIndex& block = in_.index.BlockAt(program, instance);
    released.sync = index.sync_before[instance];
    released.zero = launch.last_ps - (launches + block.launches[1]) * host.launch_ps - graphs;
  }
  *zero = released.zero + launches * host.launch_ps + graphs;
  return true;
}

bool HostClock::Find(int32_t entity, const StreamCursor& at, int32_t task, const BlockIndex& index,
                     OfLayer* clock, TaskRef* blocker) {
  // Until the host waits again, its clock goes on by launches.
  const bool synced = index.syncs && (at.layer > 0 || index.sync_before[task] >= 0);
  if (!synced) {
    if (clock->known) return true;
    clock->known = FindZero(entity, at.instance, at.layer, &clock->zero, blocker);
    return clock->known;
  }
  const int32_t program = in_.ProgramOf(entity);
  const HostParams& host = in_.hosts[program];
  const Launch launch = LaunchOf(host, in_.index, program, {at.instance, at.layer, task},
                                 [&](const TaskRef& ref) { return streams_.EndOf(entity, ref); });
  if (!launch.known) {
    *blocker = launch.sync;
    return false;
  }
  clock->known = false;
  clock->zero = launch.last_ps - host.launch_ps * index.launches[task + 1];
  return true;
}

bool HostClock::FindCondition(int32_t entity, const TaskRef& layer, const BlockIndex& index,
                              const LayerCosts& costs, int64_t* host) {
  *host = 0;
  if (!costs.hosted) return true;
  int64_t zero;
  TaskRef blocker;
  if (!FindZero(entity, layer.instance, layer.layer, &zero, &blocker)) return false;
  *host = std::max(zero - events_.now(), -costs.launch_ps * index.launches.back());
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
