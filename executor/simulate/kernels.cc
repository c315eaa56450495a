// Kernels: chains of them, and what they and communications do to each other.

#include <algorithm>

#include "executor/simulate/simulator.h"
#include "executor/simulate/slowed_work.h"

namespace plancast {
namespace {

// Whether a task waits for nothing but the one before it in its stream.
bool Follows(const Block& block, const BlockIndex& index, int32_t task) {
  return block.kind[task] == TaskKind::kKernel &&
         index.dep_begin[task] == index.dep_begin[task + 1] &&
         index.port_begin[task] == index.port_begin[task + 1];
}

}  // namespace

void Simulator::StartChain(int32_t entity, int stream, const Copy& copy, const Clock& clock) {
  const int32_t lane_index = entity * kNumStreams + stream;
  Lane& lane = lanes_[lane_index];
  Chain& chain = chains_[lane_index];
  const int32_t task = copy.index->order[copy.index->order_begin[stream] + lane.rank];
  chain.end_rank = EndOfChain(entity, stream, copy);
  chain.rank = lane.rank;
  chain.since = now_;
  chain.left = in_.DurationOf(entity, {lane.instance, lane.copy, task});
  chain.slow = entities_[entity].comms > 0;
  TimeChain(lane_index, copy, clock);
  if (chain.end == now_) {
    Advance(lane_index, chain.end_rank - lane.rank, now_);
    return;
  }
  lane.state = Lane::kKernel;
  Schedule(SlotOf(lane_index), chain.end, kEnds);
  WakeInTime(entity, stream, chain.end);
  Doubt(entity);
}

void Simulator::ResumeChain(int32_t entity, int stream, const Copy& copy, int64_t since,
                            int64_t left, bool slow) {
  const int32_t lane_index = entity * kNumStreams + stream;
  Lane& lane = lanes_[lane_index];
  Chain& chain = chains_[lane_index];
  chain.end_rank = EndOfChain(entity, stream, copy);
  chain.rank = lane.rank;
  chain.since = since;
  chain.left = left;
  chain.slow = slow;
  lane.state = Lane::kKernel;
  RetimeChain(lane_index, copy);
}

void Simulator::RetimeChain(int32_t lane_index, const Copy& copy) {
  const int32_t entity = lane_index / kNumStreams;
  Clock clock;
  TaskRef blocker;
  if (hosted_[in_.ProgramOf(entity)]) {
    ClockOf(entity, lanes_[lane_index], TaskOf(lane_index), copy, &clock, &blocker);
  }
  TimeChain(lane_index, copy, clock);
  // Rounding may have used up what was left.
  Schedule(SlotOf(lane_index), std::max(chains_[lane_index].end, now_), kEnds);
}

int32_t Simulator::EndOfChain(int32_t entity, int stream, const Copy& copy) const {
  const Lane& lane = lanes_[entity * kNumStreams + stream];
  const int32_t* const order = copy.index->order.data() + copy.index->order_begin[stream];
  const int32_t count = copy.index->Count(stream);
  int32_t rank = lane.rank + 1;
  // Where the host waits within a block, each task has a clock of its own.
  if (copy.index->syncs && hosted_[in_.ProgramOf(entity)]) return rank;
  while (rank < count && Follows(*copy.block, *copy.index, order[rank])) ++rank;
  return rank;
}

void Simulator::TimeChain(int32_t lane_index, const Copy& copy, const Clock& clock) {
  const int32_t entity = lane_index / kNumStreams, stream = lane_index % kNumStreams;
  const int32_t program = in_.ProgramOf(entity);
  const Lane& lane = lanes_[lane_index];
  Chain& chain = chains_[lane_index];
  const BlockIndex& index = *copy.index;
  const int32_t* const order = index.order.data() + index.order_begin[stream];
  const int64_t launch_ps = in_.hosts[program].launch_ps;
  const bool hosted = hosted_[program];
  int64_t start = chain.since, left = chain.left;
  for (int32_t rank = chain.rank; rank < chain.end_rank; ++rank) {
    const int32_t task = order[rank];
    const int32_t with = index.launches[task + 1];
    if (rank > chain.rank) {
      start = chain.end;
      if (hosted) {
        const int64_t launched = clock.zero + launch_ps * index.FirstLaunch(task);
        if (launched >= start) host_bound_ = 2;
        start = std::max(start, launched);
      }
      copy.start[task] = start;
      left = in_.DurationOf(entity, {lane.instance, lane.copy, task});
    }
    chain.end = start + TimeOfWork(left, chain.slow, in_.SlowdownOf(copy.block->spec[task]));
    if (hosted) {
      if (clock.zero + launch_ps * with >= chain.end) host_bound_ = 2;
      chain.end = std::max(chain.end, clock.zero + launch_ps * with);
    }
    copy.end[task] = chain.end;
  }
}

void Simulator::EndChain(int32_t lane_index) {
  const int32_t entity = lane_index / kNumStreams;
  Lane& lane = lanes_[lane_index];
  lane.state = Lane::kIdle;
  Advance(lane_index, chains_[lane_index].end_rank - lane.rank, now_);
  Wake(entity, 1u << lane_index % kNumStreams);
  WakeWaiting(entity, lane_index % kNumStreams);
  Doubt(entity);
}

void Simulator::SlowKernels(int32_t entity) {
  const bool slow = entities_[entity].comms > 0;
  uint32_t rest = in_.index.program(in_.ProgramOf(entity)).kernel_streams;
  for (; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t lane_index = entity * kNumStreams + stream;
    const Lane& lane = lanes_[lane_index];
    Chain& chain = chains_[lane_index];
    if (lane.state != Lane::kKernel || chain.slow == slow) continue;
    const Copy copy = OpenCopy(entity, lane);
    const int32_t* const order = copy.index->order.data() + copy.index->order_begin[stream];
    int32_t rank = chain.rank;
    while (rank < chain.end_rank && copy.end[order[rank]] <= now_) ++rank;
    if (rank == chain.end_rank) continue;  // all over
    if (rank != chain.rank) {
      chain.rank = rank;
      chain.since = copy.start[order[rank]];
      chain.left = in_.DurationOf(entity, {lane.instance, lane.copy, order[rank]});
    }
    // What is left is rounded whenever that changes.
    if (chain.since < now_) {
      chain.left = WorkAfter(chain.left, now_ - chain.since, chain.slow,
                             in_.SlowdownOf(copy.block->spec[order[rank]]));
      chain.since = now_;
    }
    chain.slow = slow;
    RetimeChain(lane_index, copy);
    WakeInTime(entity, stream, chain.end);
    Doubt(entity);
  }
}

void Simulator::BeginComm(int32_t entity_index, int64_t until) {
  if (!interferes_) return;
  Entity& entity = entities_[entity_index];
  if (entity.comms++ == 0) entity.over_at = 0;
  if (until == kNever) {
    ++entity.open;
  } else {
    entity.over_at = std::max(entity.over_at, until);
  }
  if (entity.run.active) {
    DisturbRun(entity_index);
  } else if (entity.comms == 1) {
    SlowKernels(entity_index);
  }
}

void Simulator::EndComm(int32_t entity_index, bool known) {
  if (!interferes_) return;
  Entity& entity = entities_[entity_index];
  --entity.comms;
  if (!known) --entity.open;
  if (entity.run.active) {
    DisturbRun(entity_index);
  } else if (entity.comms == 0) {
    SlowKernels(entity_index);
  }
}

bool Simulator::IsBusy(int32_t entity, int64_t* until) const {
  *until = kNever;
  bool busy = false;
  // Of kernels one after another, from a time that is over.
  const auto look = [&](const plancast::Block& block, const int32_t* order, int32_t count,
                        const int64_t* start, const int64_t* end, int64_t now) {
    const auto counts = [&](int32_t task) {
      return block.kind[task] == TaskKind::kKernel && end[task] > start[task];
    };
    for (int32_t i = 0; i < count; ++i) {
      const int32_t task = order[i];
      if (end[task] <= now || !counts(task)) continue;
      if (start[task] > now) {
        *until = std::min(*until, start[task] - now + now_);
        return;
      }
      busy = true;
      int64_t over = end[task];
      while (++i < count && start[order[i]] <= over) {
        if (counts(order[i])) over = std::max(over, end[order[i]]);
      }
      *until = std::min(*until, over - now + now_);
      return;
    }
  };
  const CopyRun& run = entities_[entity].run;
  if (run.active) {
    const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
    const int64_t copy = run.CopyAt(now_);
    const int64_t begin = run.begin + copy * run.period;
    const int64_t* const times = run.outcome->times;
    look(in_.BlockAt(entity, run.instance), index.order.data() + index.order_begin[kCompute],
         index.Count(kCompute), times, times + index.size, now_ - begin);
    if (copy + 1 < run.copies) *until = std::min(*until, begin + run.period);
    return busy;
  }
  uint32_t rest = in_.index.program(in_.ProgramOf(entity)).kernel_streams;
  for (; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const Lane& lane = lanes_[entity * kNumStreams + stream];
    if (lane.state != Lane::kKernel) continue;
    const Chain& chain = chains_[entity * kNumStreams + stream];
    const Piece& piece = trace_.pieces[trace_.PieceOf(entity, lane.instance, lane.copy)];
    const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), lane.instance);
    const int64_t* const start = trace_.times.data() + piece.start;
    look(in_.BlockAt(entity, lane.instance),
         index.order.data() + index.order_begin[stream] + chain.rank, chain.end_rank - chain.rank,
         start, start + index.size, now_);
  }
  return busy;
}

void Simulator::Doubt(int32_t entity_index) {
  Entity& entity = entities_[entity_index];
  if (entity.flows == 0 || entity.doubted) return;
  entity.doubted = true;
  doubted_.push_back(entity_index);
}

void Simulator::SlowTransfers() {
  for (const int32_t e : doubted_) {
    Entity& entity = entities_[e];
    entity.doubted = false;
    if (entity.flows == 0) continue;
    int64_t until;
    const bool busy = IsBusy(e, &until);
    if (until != kNever) Schedule(e * kNumSlots + kBusy, until, kBegins);
    if (busy == entity.busy) continue;
    entity.busy = busy;
    for (int32_t lane = e * kNumStreams; lane < (e + 1) * kNumStreams; ++lane) {
      if (lanes_[lane].state == Lane::kFlies && flights_[flight_of_[lane]].flows &&
          !IsQuiet(flights_[flight_of_[lane]].group)) {
        SlowTransfer(flight_of_[lane], busy ? 1 : -1);
      }
    }
  }
  doubted_.clear();
}

void Simulator::SlowTransfer(int32_t flight_index, int32_t more_busy) {
  Flight& flight = flights_[flight_index];
  flight.busy += more_busy;
  const bool slow = flight.busy > 0;
  if (slow == flight.slow) return;
  flight.slow = slow;
  if (flight.activity >= 0) {
    fluid_.ChangeKind(flight.activity, KindOf(flight));
    return;
  }
  FlowAlone(flight_index, flight.progress);
}

}  // namespace plancast
