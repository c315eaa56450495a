#include "executor/simulate/kernel_chains.h"

#include <algorithm>

#include "executor/simulate/layer/slowed_work.h"

namespace plancast {
namespace {

// Whether a task waits for nothing but the one before it in its stream.
bool Follows(const Block& block, const BlockIndex& index, int32_t task) {
  return block.kind[task] == TaskKind::kKernel &&
         index.dep_begin[task] == index.dep_begin[task + 1] &&
         index.port_begin[task] == index.port_begin[task + 1];
}

// Looks for kernels that run at a time among some that run one after another; times are
// those of a layer that begins at `origin`.
class BusyKernels {
 public:
  BusyKernels(int64_t now, int64_t* until) : now_(now), until_(until) {}

  bool Look(const Block& block, const int32_t* order, int32_t count, const int64_t* start,
            const int64_t* end, int64_t origin) {
    const int64_t now = now_ - origin;
    const auto counts = [&](int32_t task) {
      return block.kind[task] == TaskKind::kKernel && end[task] > start[task];
    };
    for (int32_t i = 0; i < count; ++i) {
      const int32_t task = order[i];
      if (end[task] <= now || !counts(task)) continue;
      if (start[task] > now) {
        *until_ = std::min(*until_, start[task] + origin);
        return false;
      }
      int64_t over = end[task];
      while (++i < count && start[order[i]] <= over) {
        if (counts(order[i])) over = std::max(over, end[order[i]]);
      }
      *until_ = std::min(*until_, over + origin);
      return true;
    }
    return false;
  }

 private:
  const int64_t now_;
  int64_t* const until_;
};

}  // namespace

KernelChains::KernelChains(const SimInput& in, Streams& streams, HostClock& hosts, Overlap& overlap,
                           Events& events)
    : in_(in),
      streams_(streams),
      hosts_(hosts),
      overlap_(overlap),
      events_(events),
      chains_(streams.cursors().size()) {}

void KernelChains::Start(int32_t entity, int stream, const Streams::OpenLayer& layer,
                         const HostClock::OfLayer& clock) {
  const int32_t cursor = CursorOf(entity, stream);
  StreamCursor& at = streams_.cursor(cursor);
  Chain& chain = chains_[cursor];
  const int32_t task = layer.index->order[layer.index->order_begin[stream] + at.rank];
  chain.end_rank = EndOfChain(entity, stream, layer);
  chain.rank = at.rank;
  chain.since = events_.now();
  chain.left = in_.DurationOf(entity, {at.instance, at.layer, task});
  chain.slow = overlap_.of(entity).comms > 0;
  FindTimes(cursor, layer, clock);
  if (chain.end == events_.now()) {
    streams_.Advance(cursor, chain.end_rank - at.rank, chain.end);
    return;
  }
  at.state = StreamCursor::kKernels;
  events_.Schedule(cursor, chain.end, Events::kEnds);
  streams_.WakeInTime(entity, stream, chain.end);
  overlap_.Doubt(entity);
}

void KernelChains::Resume(int32_t entity, int stream, const Streams::OpenLayer& layer,
                          int64_t since, int64_t left, bool slow) {
  const int32_t cursor = CursorOf(entity, stream);
  StreamCursor& at = streams_.cursor(cursor);
  Chain& chain = chains_[cursor];
  chain.end_rank = EndOfChain(entity, stream, layer);
  chain.rank = at.rank;
  chain.since = since;
  chain.left = left;
  chain.slow = slow;
  at.state = StreamCursor::kKernels;
  Restart(cursor, layer);
}

void KernelChains::Restart(int32_t cursor, const Streams::OpenLayer& layer) {
  const int32_t entity = EntityOf(cursor);
  HostClock::OfLayer clock;
  TaskRef blocker;
  if (hosts_.Matters(in_.ProgramOf(entity))) {
    hosts_.Find(entity, streams_.cursor(cursor), streams_.TaskAt(cursor), *layer.index, &clock,
                &blocker);
  }
  FindTimes(cursor, layer, clock);
  // Rounding may have used up what was left.
  events_.Schedule(cursor, std::max(chains_[cursor].end, events_.now()), Events::kEnds);
}

int32_t KernelChains::EndOfChain(int32_t entity, int stream,
                                 const Streams::OpenLayer& layer) const {
  const int32_t* const order = layer.index->order.data() + layer.index->order_begin[stream];
  const int32_t count = layer.index->Count(stream);
  int32_t rank = streams_.cursor(CursorOf(entity, stream)).rank + 1;
  // Tasks behind different waits of the host have clocks of their own.
  const BlockIndex& index = *layer.index;
  const bool clocks = index.syncs && hosts_.Matters(in_.ProgramOf(entity));
  const int32_t wait = index.sync_before[order[rank - 1]];
  while (rank < count && Follows(*layer.block, index, order[rank]) &&
         (!clocks || index.sync_before[order[rank]] == wait)) {
    ++rank;
  }
  return rank;
}

void KernelChains::FindTimes(int32_t cursor, const Streams::OpenLayer& layer,
                             const HostClock::OfLayer& clock) {
  const int32_t entity = EntityOf(cursor), stream = StreamOf(cursor);
  const int32_t program = in_.ProgramOf(entity);
  const StreamCursor& at = streams_.cursor(cursor);
  Chain& chain = chains_[cursor];
  const BlockIndex& index = *layer.index;
  const int32_t* const order = index.order.data() + index.order_begin[stream];
  const int64_t launch_ps = in_.hosts[program].launch_ps;
  const bool hosted = hosts_.Matters(program);
  int64_t start = chain.since, left = chain.left;
  for (int32_t rank = chain.rank; rank < chain.end_rank; ++rank) {
    const int32_t task = order[rank];
    const int32_t with = index.launches[task + 1];
    if (rank > chain.rank) {
      start = chain.end;
      if (hosted) {
        const int64_t launched = clock.zero + launch_ps * index.FirstLaunch(task);
        if (launched >= start) hosts_.NoteWait(program);
        start = std::max(start, launched);
      }
      layer.start[task] = start;
      left = in_.DurationOf(entity, {at.instance, at.layer, task});
    }
    chain.end =
        start + TimeOfWork(left, chain.slow, in_.SlowdownOf(entity, layer.block->spec[task]));
    if (hosted) {
      if (clock.zero + launch_ps * with >= chain.end) hosts_.NoteWait(program);
      chain.end = std::max(chain.end, clock.zero + launch_ps * with);
    }
    layer.end[task] = chain.end;
  }
}

void KernelChains::End(int32_t cursor) {
  const int32_t entity = EntityOf(cursor);
  StreamCursor& at = streams_.cursor(cursor);
  at.state = StreamCursor::kIdle;
  streams_.Advance(cursor, chains_[cursor].end_rank - at.rank, events_.now());
  streams_.Wake(entity, MaskOf(StreamOf(cursor)));
  streams_.WakeWaiting(entity, StreamOf(cursor));
  overlap_.Doubt(entity);
}

void KernelChains::SetSlow(int32_t entity, bool slow) {
  uint32_t rest = in_.index.program(in_.ProgramOf(entity)).kernel_streams;
  for (; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t cursor = CursorOf(entity, stream);
    const StreamCursor& at = streams_.cursor(cursor);
    Chain& chain = chains_[cursor];
    if (at.state != StreamCursor::kKernels || chain.slow == slow) continue;
    const Streams::OpenLayer layer = streams_.Open(entity, at);
    const int32_t* const order = layer.index->order.data() + layer.index->order_begin[stream];
    int32_t rank = chain.rank;
    while (rank < chain.end_rank && layer.end[order[rank]] <= events_.now()) ++rank;
    if (rank == chain.end_rank) continue;  // all over
    if (rank != chain.rank) {
      chain.rank = rank;
      chain.since = layer.start[order[rank]];
      chain.left = in_.DurationOf(entity, {at.instance, at.layer, order[rank]});
    }
    // What is left is rounded whenever that changes.
    if (chain.since < events_.now()) {
      chain.left = WorkAfter(chain.left, events_.now() - chain.since, chain.slow,
                             in_.SlowdownOf(entity, layer.block->spec[order[rank]]));
      chain.since = events_.now();
    }
    chain.slow = slow;
    Restart(cursor, layer);
    streams_.WakeInTime(entity, stream, chain.end);
    overlap_.Doubt(entity);
  }
}

bool KernelChains::IsBusy(int32_t entity, int64_t* until) const {
  *until = Events::kNever;
  BusyKernels kernels(events_.now(), until);
  const LayerRun& run = streams_.run(entity);
  if (run.active) {
    const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
    const int64_t layer = run.LayerAt(events_.now());
    const int64_t begin = run.begin + layer * run.period;
    const int64_t* const times = run.outcome->times;
    const bool busy = kernels.Look(in_.BlockAt(entity, run.instance),
                                   index.order.data() + index.order_begin[kCompute],
                                   index.Count(kCompute), times, times + index.size, begin);
    if (layer + 1 < run.layers) *until = std::min(*until, begin + run.period);
    return busy;
  }
  bool busy = false;
  uint32_t rest = in_.index.program(in_.ProgramOf(entity)).kernel_streams;
  for (; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t cursor = CursorOf(entity, stream);
    const StreamCursor& at = streams_.cursor(cursor);
    if (at.state != StreamCursor::kKernels) continue;
    const Chain& chain = chains_[cursor];
    const SimTrace& trace = streams_.trace();
    const Piece& piece = trace.pieces[trace.PieceOf(entity, at.instance, at.layer)];
    const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), at.instance);
    const int64_t* const start = trace.times.data() + piece.start;
    busy |= kernels.Look(in_.BlockAt(entity, at.instance),
                         index.order.data() + index.order_begin[stream] + chain.rank,
                         chain.end_rank - chain.rank, start, start + index.size, /*origin=*/0);
  }
  return busy;
}

void KernelChains::Describe(int32_t cursor, Snapshot& snapshot) const {
  const Chain& chain = chains_[cursor];
  snapshot.Exact(chain.end_rank);
  snapshot.Exact(chain.rank);
  snapshot.Time(chain.since);
  snapshot.Exact(chain.left);
  snapshot.Exact(chain.slow);
  snapshot.Time(chain.end);
}

}  // namespace plancast
