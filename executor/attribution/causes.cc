#include "executor/attribution/causes.h"

#include <algorithm>

namespace plancast {

int64_t Causes::Arrival(int32_t entity, const TaskRef& ref, int64_t start, Cause* cause) const {
  const int32_t program = in_.ProgramOf(entity);
  const HostParams& host = in_.hosts[program];
  const Instance* const instances = in_.index.program(program).instances;
  const int64_t* const layers = trace_.layer_begin.data() + trace_.instance_begin[entity];
  const auto end_of = [&](const TaskRef& task) {
    const int32_t size = in_.index.block(instances[task.instance].block).size;
    const Piece& piece = trace_.pieces[trace_.piece_of[layers[task.instance] + task.layer]];
    return trace_.TimeIn(piece, task.layer, size, task.task);
  };
  // Of two tasks that end at once.
  const auto goes_first = [&](const TaskRef& a, const TaskRef& b) {
    const int x = in_.index.StreamOf(program, a), y = in_.index.StreamOf(program, b);
    return x != y ? x < y : in_.index.PlaceOf(program, a) > in_.index.PlaceOf(program, b);
  };
  int64_t ready = host.start_ps;
  *cause = {Cause::kBeginning, entity, {}};
  const TaskRef before = in_.index.Predecessor(program, ref);
  if (before.instance >= 0) {
    ready = end_of(before);
    *cause = {Cause::kTask, entity, before};
    if (ready == start) return ready;
  }
  const int64_t predecessor = ready;
  TaskRef last;
  in_.index.LookAtWaits(program, ref, [&](const TaskRef& wait) {
    // Several in-ports may wait for one task.
    if (wait == last) return true;
    last = wait;
    // Nothing that it waits for ends after the start.
    if (ready == start && ready > predecessor && !goes_first(wait, cause->ref)) return true;
    const int64_t end = end_of(wait);
    if (end > predecessor && (end > ready || (end == ready && goes_first(wait, cause->ref)))) {
      ready = end;
      *cause = {Cause::kTask, entity, wait};
    }
    return true;
  });
  // No launch is after the start.
  if (ready < start && (host.Costs() || in_.index.program(program).syncs)) {
    const Launch launch = LaunchOf(host, in_.index, program, ref,
                                   [&](const TaskRef& sync) { return EndOf(entity, sync); });
    if (launch.first_ps > ready) {
      ready = launch.first_ps;
      *cause = {Cause::kHost, entity, launch.sync};
    }
  }
  return ready;
}

int32_t Causes::InLayer(const BlockIndex& index, const int64_t* start, int32_t task) {
  if (index.rank[task] == 0) return -1;
  const int64_t* const end = start + index.size;
  // Their order is by stream, so the one before in the same stream is before.
  const int32_t before = index.order[index.position[task] - 1];
  if (end[before] == start[task]) return before;
  if (index.port_begin[task] < index.port_begin[task + 1]) return -1;
  for (int32_t d = index.dep_begin[task]; d < index.dep_begin[task + 1]; ++d) {
    if (end[index.deps[d]] == start[task]) return index.deps[d];
  }
  return -1;
}

bool Causes::OfOwnLayer(int32_t entity, const TaskRef& ref, Cause* cause) const {
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), ref.instance);
  if (index.rank[ref.task] == 0) return false;
  const Piece& piece = trace_.pieces[trace_.PieceOf(entity, ref.instance, ref.layer)];
  const int32_t found = InLayer(index, trace_.times.data() + piece.start, ref.task);
  if (found < 0) return false;
  *cause = {Cause::kTask, entity, {ref.instance, ref.layer, found}};
  return true;
}

Cause Causes::Of(int32_t entity, const TaskRef& ref, int64_t start) const {
  Cause cause;
  if (OfOwnLayer(entity, ref, &cause)) return cause;
  if (Arrival(entity, ref, start, &cause) >= start) return cause;
  for (int32_t peer : in_.sim.MembersOf(in_.sim.groups[in_.GroupOf(entity, ref)])) {
    const TaskRef theirs = counterparts_.Of(in_.ProgramOf(entity), ref, in_.ProgramOf(peer));
    Cause own;
    if (peer == entity || Arrival(peer, theirs, start, &own) < start) continue;
    return {Cause::kPeer, peer, theirs};
  }
  return cause;
}

int64_t Causes::LaunchTail(int32_t entity, const TaskRef& ref, int64_t start, int64_t end,
                           LayerClock* clock) const {
  const int32_t program = in_.ProgramOf(entity);
  const HostParams& host = in_.hosts[program];
  const BlockIndex& index = in_.index.BlockAt(program, ref.instance);
  if (host.launch_ps == 0 || index.launches[ref.task + 1] - index.launches[ref.task] < 2) return 0;
  // Most kernels take as long as alone.
  const int64_t tail = end - start - in_.DurationOf(entity, ref);
  if (tail <= 0) return 0;
  if (!clock->known) {
    const Launch launch = LaunchOf(host, in_.index, program, ref,
                                   [&](const TaskRef& sync) { return EndOf(entity, sync); });
    clock->zero_ps = launch.last_ps - host.launch_ps * index.launches[ref.task + 1];
    clock->known = !index.syncs;
  }
  return clock->zero_ps + host.launch_ps * index.launches[ref.task + 1] == end ? tail : 0;
}

UnfoldedTrace Unfold(const SimInput& input, const SimTrace& trace, int32_t entity) {
  const Causes causes(input, trace);
  const int32_t program = input.ProgramOf(entity);
  UnfoldedTrace unfolded;
  const auto& instances = input.graph.programs[program].instances;
  for (int32_t i = 0; i < static_cast<int32_t>(instances.size()); ++i) {
    const int32_t size = input.graph.blocks[instances[i].block].size();
    for (int32_t layer = 0; layer < instances[i].layer_count; ++layer) {
      for (int32_t task = 0; task < size; ++task) {
        const TaskRef ref{i, layer, task};
        unfolded.start.push_back(causes.StartOf(entity, ref));
        unfolded.end.push_back(causes.EndOf(entity, ref));
        const Cause cause = causes.Of(entity, ref);
        unfolded.cause.push_back(
            cause.kind == Cause::kTask   ? input.index.IssueOf(program, cause.ref)
            : cause.kind == Cause::kHost ? UnfoldedTrace::kHost
            : cause.kind == Cause::kPeer ? UnfoldedTrace::PeerCause(cause.entity)
                                         : UnfoldedTrace::kBeginning);
      }
    }
  }
  return unfolded;
}

}  // namespace plancast
