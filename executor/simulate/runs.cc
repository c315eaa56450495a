// Runs of copies: they end, they are disturbed, or they come apart.

#include <algorithm>

#include "executor/simulate/simulator.h"

namespace plancast {
namespace {

// Whether others cease to communicate beside a run at a time.
bool CeaseAt(const under_way::CopyRun& run, int64_t time) {
  const CopyConditions::Toggles& toggles = run.conditions.toggles;
  for (size_t i = 1; i < toggles.size(); i += 2) {
    if (toggles[i] == time - run.begin) return true;
  }
  return false;
}

}  // namespace

void Simulator::StartRun(int32_t entity) {
  CopyRun& run = entities_[entity].run;
  Schedule(entity * kNumSlots + kRunEnd, run.end(), kEnds);
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
  const int64_t* const end = run.outcome->times + index.size;
  const int64_t last = run.end() - run.outcome->end;  // when the last copy begins
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    WakeInTime(entity, stream, run.end());
    const int64_t over = end[index.Last(stream)];
    if (stream == kCompute) continue;
    if (over == run.outcome->end || last + over < now_ || !MayLeave(entity, run, stream)) {
      Cancel(entity * kNumSlots + stream);
    } else {
      Schedule(entity * kNumSlots + stream, last + over, kEnds);
    }
  }
  Doubt(entity);
}

void Simulator::LeaveRun(int32_t lane_index) {
  const int32_t entity = lane_index / kNumStreams, stream = lane_index % kNumStreams;
  CopyRun& run = entities_[entity].run;
  const int32_t program = in_.ProgramOf(entity);
  Lane& lane = lanes_[lane_index];
  run.streams &= static_cast<StreamMask>(~MaskOf(stream));
  lane.state = Lane::kIdle;
  lane.last_end = now_;
  lane.copy = run.first_copy + run.copies;
  lane.rank = 0;
  if (lane.copy == in_.index.InstanceOf(program, run.instance).layer_count) {
    EnterInstance(lane_index, lane.cursor + 1);
  }
  Wake(entity, 1u << stream);
  WakeWaiting(entity, stream);
}

void Simulator::WriteCopy(int32_t entity, const CopyStop* stop) {
  const CopyRun& run = entities_[entity].run;
  Lane at;
  at.instance = run.instance;
  at.copy = run.first_copy;
  const Copy copy = OpenCopy(entity, at);
  const BlockIndex& index = *copy.index;
  const int64_t* const times = run.outcome->times;
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t* const order = index.order.data() + index.order_begin[stream];
    // A stream that has gone on is through, even if it was at this very moment.
    const bool stops = stop != nullptr && (run.streams & MaskOf(stream)) != 0;
    const int32_t over = stops ? stop->streams[stream].rank : index.Count(stream);
    for (int32_t rank = run.conditions.RankOf(stream); rank < over; ++rank) {
      const int32_t task = order[rank];
      if (!run.conditions.Begun(stream, rank)) copy.start[task] = run.begin + times[task];
      copy.end[task] = run.begin + times[index.size + task];
    }
    if (!stops || !stop->streams[stream].runs || run.conditions.Begun(stream, over)) continue;
    copy.start[order[over]] = run.begin + stop->streams[stream].start;
  }
}

void Simulator::KeepCopies(int32_t entity, int32_t copies) {
  CopyRun& run = entities_[entity].run;
  CopyOutcome& outcome = *run.outcome;
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
  if (run.partial) {
    WriteCopy(entity, nullptr);
  } else {
    if (outcome.trace_begin < 0) {
      outcome.trace_begin = static_cast<int64_t>(trace_.times.size());
      outcome.trace_number = numbered_++;
      trace_.times.insert(trace_.times.end(), outcome.times, outcome.times + 2 * index.size);
    }
    trace_.Add(
        entity, run.instance,
        {run.first_copy, copies, outcome.trace_number, run.begin, run.period, outcome.trace_begin});
  }
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    Lane& lane = lanes_[entity * kNumStreams + stream];
    lane.copy += copies;
    lane.rank = 0;
    lane.last_end =
        run.begin + (copies - 1) * run.period + outcome.times[index.size + index.Last(stream)];
  }
  run.first_copy += copies;
  run.copies -= copies;
  run.begin += copies * run.period;
}

void Simulator::EndRun(int32_t entity) {
  CopyRun& run = entities_[entity].run;
  const int32_t layers = in_.index.InstanceOf(in_.ProgramOf(entity), run.instance).layer_count;
  KeepCopies(entity, run.copies);
  run.active = false;
  outcomes_.Release(run.outcome);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int32_t lane_index = entity * kNumStreams + __builtin_ctz(rest);
    Lane& lane = lanes_[lane_index];
    lane.state = Lane::kIdle;
    if (lane.copy == layers) EnterInstance(lane_index, lane.cursor + 1);
  }
  Wake(entity, run.streams);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    WakeWaiting(entity, __builtin_ctz(rest));
  }
  Doubt(entity);
}

void Simulator::DisturbRun(int32_t entity_index) {
  const Entity& entity = entities_[entity_index];
  CopyRun& run = entities_[entity_index].run;
  if (run.copies > 1) {
    const bool on = !run.conditions.toggles.empty();
    if (on == (entity.comms > 0) && (!on || entity.open > 0)) return;
    if (const int32_t over = run.CopyAt(now_); over > 0) KeepCopies(entity_index, over);
    run.copies = 1;
  }
  if (!FindToggles(entity_index) || entity.disturbed) return;
  entities_[entity_index].disturbed = true;
  disturbed_.push_back(entity_index);
}

void Simulator::SettleRuns() {
  while (!disturbed_.empty()) {
    const int32_t entity = disturbed_.back();
    disturbed_.pop_back();
    entities_[entity].disturbed = false;
    CopyRun& run = entities_[entity].run;
    if (!run.active) continue;
    CopyOutcome* const before = run.outcome;
    run.outcome = OutcomeOf(entity, before);
    if (EndsWhole(entity, run)) {
      outcomes_.Release(before);
      StartRun(entity);
      continue;
    }
    outcomes_.Release(run.outcome);
    run.outcome = before;
    DissolveRun(entity);
    Drain();
  }
}

void Simulator::FindOver(int32_t entity) {
  entities_[entity].over_at = 0;
  for (int32_t lane = entity * kNumStreams; lane < (entity + 1) * kNumStreams; ++lane) {
    if (lanes_[lane].state != Lane::kFlies) continue;
    const int32_t flight = flight_of_[lane];
    if (Shares(flights_[flight]) || IsQuiet(flights_[flight].group)) continue;
    entities_[entity].over_at =
        std::max(entities_[entity].over_at, events_.KeyOf(SlotOf(flight)) >> 1);
  }
}

bool Simulator::FindToggles(int32_t entity_index) {
  const Entity& entity = entities_[entity_index];
  const int64_t now = now_ - entity.run.begin;
  auto& toggles = entities_[entity_index].run.conditions.toggles;
  const auto before = toggles;
  while (!toggles.empty() && toggles.back() > now) toggles.pop_back();
  const bool on = toggles.size() % 2 == 1;
  if (on != (entity.comms > 0)) {
    // What began and ended at once has never been.
    if (toggles.size() == 1 && toggles[0] == now) {
      toggles.pop_back();
    } else {
      toggles.push_back(now);
    }
  }
  if (entity.comms > 0 && entity.open == 0 && entity.over_at > now_) {
    toggles.push_back(entity.over_at - entity.run.begin);
  }
  return toggles != before;
}

void Simulator::DissolveRun(int32_t entity) {
  CopyRun& run = entities_[entity].run;
  if (run.copies > 1) {
    if (const int32_t over = run.CopyAt(now_); over > 0) KeepCopies(entity, over);
  }
  const Variant& variant = variants_[run.variant];
  const BlockIndex& index = in_.index.block(variant.block);
  const CopyStop stop = runner_.RunUntil(now_ - run.begin, in_.graph.blocks[variant.block], index,
                                         variant.costs, run.conditions);
  run.active = false;
  Cancel(entity * kNumSlots + kRunEnd);
  WriteCopy(entity, &stop);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t over = stop.streams[stream].rank - run.conditions.RankOf(stream);
    const int32_t lane_index = entity * kNumStreams + stream;
    lanes_[lane_index].state = Lane::kIdle;
    Cancel(SlotOf(lane_index));
    if (over == 0) continue;
    const int32_t last = index.order[index.order_begin[stream] + stop.streams[stream].rank - 1];
    Advance(lane_index, over, run.begin + run.outcome->times[index.size + last]);
  }
  outcomes_.Release(run.outcome);
  const int32_t comms = entities_[entity].comms;
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    if (stop.streams[stream].runs) Resume(entity, stream, stop.streams[stream], run.begin);
  }
  Wake(entity, run.streams);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    WakeWaiting(entity, __builtin_ctz(rest));
    WakeInTime(entity, __builtin_ctz(rest), kNever);
  }
  // If no communication lasts on, what is left of kernels is rounded even if others
  // begin at once.
  if (comms > 0 && comms == entities_[entity].comms && CeaseAt(run, now_)) {
    entities_[entity].comms = 0;
    SlowKernels(entity);
    entities_[entity].comms = comms;
  }
  SlowKernels(entity);
  Doubt(entity);
}

void Simulator::Resume(int32_t entity, int stream, const CopyStop::Stream& at, int64_t origin) {
  const int32_t lane_index = entity * kNumStreams + stream;
  Lane& lane = lanes_[lane_index];
  Copy copy = OpenCopy(entity, lane);
  const int32_t task = TaskOf(lane_index);
  if (copy.block->kind[task] == TaskKind::kKernel) {
    ResumeChain(entity, stream, copy, origin + at.since, at.left, at.slow);
    return;
  }
  const Variant& variant =
      variants_[WholeOf(entity, in_.index.InstanceOf(in_.ProgramOf(entity), lane.instance).block)
                    .variant];
  const CopyCosts::Task& cost = variant.costs.tasks[task];
  const int32_t group = variant.groups[task];
  StartFlight(lane_index, group, in_.realised[sim_.groups[group].realised].work_bytes,
              origin + at.since);
  Flight& flight = flights_[lane_index];
  flight.work_left = at.work_left;
  next_member_[lane_index] = -1;
  flight_of_[lane_index] = lane_index;
  lane.state = Lane::kFlies;
  const bool quiet = IsQuiet(group);
  if (interferes_ && !quiet) {
    Entity& own = entities_[entity];
    if (own.comms++ == 0) own.over_at = 0;
    own.open += Shares(flight) ? 1 : 0;
  }
  Fluid::Progress progress;
  progress.left = at.work_left;
  progress.rate_q16 = at.slow ? cost.slow_rate_q16 : cost.rate_q16;
  progress.since = flight.transfer_at;
  progress.end = progress.since + ActivityKinds::Duration(progress.left, progress.rate_q16);
  if (!Shares(flight)) {
    if (!quiet) entities_[entity].over_at = std::max(entities_[entity].over_at, progress.end);
    Schedule(SlotOf(lane_index), progress.end, kEnds);
  } else if (now_ <= flight.transfer_at && at.work_left == cost.work) {
    Schedule(SlotOf(lane_index), flight.transfer_at, kBegins);
  } else {
    Flow(lane_index, progress);
  }
}

void Simulator::DissolveRivals(int32_t flight) {
  for (const Fluid::Use& load : sim_.LoadsOf(sim_.groups[flights_[flight].group])) {
    for (const int32_t lane : contention_.LanesOn(load.resource)) {
      if (lanes_[lane].state == Lane::kRuns) DissolveRun(lane / kNumStreams);
    }
  }
}

}  // namespace plancast
