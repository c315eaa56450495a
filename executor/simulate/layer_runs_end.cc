// Layer runs go on, end, are disturbed, or come apart.

#include "executor/simulate/layer_runs.h"

namespace plancast {

void LayerRuns::Schedule(int32_t entity) {
  const LayerRun& run = streams_.run(entity);
  events_.Schedule(entity, Events::kRunEnd, run.end(), Events::kEnds);
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
  const int64_t* const end = run.outcome->times + index.size;
  const int64_t last = run.begin + (run.layers - 1) * run.period;  // when the last layer begins
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    streams_.WakeInTime(entity, stream, run.end());
    if ((run.behind & MaskOf(stream)) != 0) {
      events_.Schedule(entity, stream, run.begin + end[index.size], Events::kEnds);
    } else if (stream != kCompute) {
      ScheduleStream(entity, stream, last);
    }
  }
  overlap_.Doubt(entity);
}

void LayerRuns::ScheduleStream(int32_t entity, int stream, int64_t last) {
  const LayerRun& run = streams_.run(entity);
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
  const int64_t over = last + run.outcome->times[index.size + index.Last(stream)];
  if (over >= run.end() || over < events_.now() || !MayLeave(entity, run, stream)) {
    events_.Cancel(entity, stream);
  } else {
    events_.Schedule(entity, stream, over, Events::kEnds);
  }
}

void LayerRuns::EndBehind(int32_t entity) {
  LayerRun& run = streams_.run(entity);
  if (run.behind == 0) return;
  const BlockIndex& own = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
  const int64_t over = run.begin + run.outcome->times[2 * own.size];
  if (over > events_.now()) return;
  const int stream = __builtin_ctz(run.behind);
  run.behind = 0;
  const int32_t cursor = CursorOf(entity, stream);
  const Streams::OpenLayer layer = streams_.Open(entity, streams_.cursor(cursor));
  layer.end[streams_.TaskAt(cursor)] = over;
  streams_.Advance(cursor, 1, over);
  streams_.WakeWaiting(entity, stream);
  ScheduleStream(entity, stream, run.begin);
}

void LayerRuns::Leave(int32_t cursor_id) {
  const int32_t entity = EntityOf(cursor_id), stream = StreamOf(cursor_id);
  LayerRun& run = streams_.run(entity);
  if ((run.behind & MaskOf(stream)) != 0) return EndBehind(entity);
  StreamCursor& cursor = streams_.cursor(cursor_id);
  run.streams &= static_cast<StreamMask>(~MaskOf(stream));
  cursor.state = StreamCursor::kIdle;
  cursor.last_end = events_.now();
  cursor.layer = run.first_layer + run.layers;
  cursor.rank = 0;
  streams_.LeaveIfOver(cursor_id);
  streams_.Wake(entity, MaskOf(stream));
  streams_.WakeWaiting(entity, stream);
}

void LayerRuns::WriteLayer(int32_t entity, const LayerStop* stop) {
  const LayerRun& run = streams_.run(entity);
  StreamCursor at;
  at.instance = run.instance;
  at.layer = run.first_layer;
  const Streams::OpenLayer layer = streams_.Open(entity, at);
  const BlockIndex& index = *layer.index;
  const int64_t* const times = run.outcome->times;
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t* const order = index.order.data() + index.order_begin[stream];
    // A stream that has gone on is through, even if it was at this very moment.
    const bool stops = stop != nullptr && (run.streams & MaskOf(stream)) != 0;
    const int32_t over = stops ? stop->streams[stream].rank : index.Count(stream);
    for (int32_t rank = run.conditions.RankOf(stream); rank < over; ++rank) {
      const int32_t task = order[rank];
      if (!run.conditions.Begun(stream, rank)) layer.start[task] = run.begin + times[task];
      layer.end[task] = run.begin + times[index.size + task];
    }
    if (!stops || !stop->streams[stream].runs || run.conditions.Begun(stream, over)) continue;
    layer.start[order[over]] = run.begin + stop->streams[stream].start;
  }
}

void LayerRuns::Keep(int32_t entity, int32_t layers) {
  LayerRun& run = streams_.run(entity);
  LayerOutcome& outcome = *run.outcome;
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), run.instance);
  if (run.partial) {
    WriteLayer(entity, nullptr);
  } else {
    SimTrace& trace = streams_.trace();
    if (outcome.trace_begin < 0) {
      outcome.trace_begin = static_cast<int64_t>(trace.times.size());
      outcome.trace_number = numbered_++;
      trace.times.insert(trace.times.end(), outcome.times, outcome.times + 2 * index.size);
    }
    trace.Add(entity, run.instance,
              {run.first_layer, layers, outcome.trace_number, run.begin, run.period,
               outcome.trace_begin});
  }
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    StreamCursor& cursor = streams_.cursor(CursorOf(entity, stream));
    cursor.layer += layers;
    cursor.rank = 0;
    cursor.last_end =
        run.begin + (layers - 1) * run.period + outcome.times[index.size + index.Last(stream)];
  }
  run.first_layer += layers;
  run.layers -= layers;
  run.begin += layers * run.period;
}

void LayerRuns::End(int32_t entity) {
  LayerRun& run = streams_.run(entity);
  EndBehind(entity);
  if (run.tails) return Dissolve(entity);
  Keep(entity, run.layers);
  run.active = false;
  outcomes_.Release(run.outcome);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int32_t cursor_id = CursorOf(entity, __builtin_ctz(rest));
    streams_.cursor(cursor_id).state = StreamCursor::kIdle;
    streams_.LeaveIfOver(cursor_id);
  }
  streams_.Wake(entity, run.streams);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    streams_.WakeWaiting(entity, __builtin_ctz(rest));
  }
  overlap_.Doubt(entity);
}

void LayerRuns::OnCommsChange(int32_t entity) {
  const Overlap::Entity& others = overlap_.of(entity);
  LayerRun& run = streams_.run(entity);
  if (run.layers > 1) {
    const bool on = !run.conditions.toggles.empty();
    if (on == (others.comms > 0) && (!on || others.open > 0)) return;
    if (const int32_t over = run.LayerAt(events_.now()); over > 0) Keep(entity, over);
    run.layers = 1;
  }
  if (!FindToggles(entity) || is_disturbed_[entity]) return;
  is_disturbed_[entity] = true;
  disturbed_.push_back(entity);
}

bool LayerRuns::SettleDisturbed() {
  while (!disturbed_.empty()) {
    const int32_t entity = disturbed_.back();
    disturbed_.pop_back();
    is_disturbed_[entity] = false;
    LayerRun& run = streams_.run(entity);
    if (!run.active) continue;
    LayerOutcome* const before = run.outcome;
    run.outcome = OutcomeOf(entity, before);
    outcomes_.Release(before);
    FindTail(entity);
    if (run.end() > events_.now() || !run.tails) {
      Schedule(entity);
      continue;
    }
    Dissolve(entity);
    return true;
  }
  return false;
}

bool LayerRuns::FindToggles(int32_t entity) {
  const Overlap::Entity& others = overlap_.of(entity);
  LayerRun& run = streams_.run(entity);
  const int64_t now = events_.now() - run.begin;
  auto& toggles = run.conditions.toggles;
  const auto before = toggles;
  while (!toggles.empty() && toggles.back() > now) toggles.pop_back();
  const bool on = toggles.size() % 2 == 1;
  if (on != (others.comms > 0)) {
    // What began and ended at once has never been.
    if (toggles.size() == 1 && toggles[0] == now) {
      toggles.pop_back();
    } else {
      toggles.push_back(now);
    }
  }
  if (others.comms > 0 && others.open == 0 && others.over_at > events_.now()) {
    toggles.push_back(others.over_at - run.begin);
  }
  return toggles != before;
}

void LayerRuns::Dissolve(int32_t entity) {
  LayerRun& run = streams_.run(entity);
  EndBehind(entity);
  if (run.layers > 1) {
    if (const int32_t over = run.LayerAt(events_.now()); over > 0) Keep(entity, over);
  }
  if (run.tails && run.kernels_end == 0) {
    run.apart_at = TaskIndex::Place(run.instance, run.first_layer, 0);
  }
  const LayerVariants::Variant& variant = variants_[run.variant];
  const BlockIndex& index = in_.index.block(variant.block);
  const LayerStop stop =
      runner_.RunUntil(events_.now() - run.begin, run.outcome->times,
                       in_.graph.blocks[variant.block], index, variant.costs, run.conditions);
  run.active = false;
  events_.Cancel(entity, Events::kRunEnd);
  WriteLayer(entity, &stop);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t over = stop.streams[stream].rank == LayerConditions::kBehind
                             ? 0
                             : stop.streams[stream].rank - run.conditions.RankOf(stream);
    const int32_t cursor = CursorOf(entity, stream);
    streams_.cursor(cursor).state = StreamCursor::kIdle;
    events_.Cancel(cursor);
    if (over == 0) continue;
    const int32_t last = index.order[index.order_begin[stream] + stop.streams[stream].rank - 1];
    streams_.Advance(cursor, over, run.begin + run.outcome->times[index.size + last]);
  }
  outcomes_.Release(run.outcome);
  const int32_t comms = overlap_.of(entity).comms;
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    if (stop.streams[stream].runs) Resume(entity, stream, stop.streams[stream], run.begin);
  }
  streams_.Wake(entity, run.streams);
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    streams_.WakeWaiting(entity, __builtin_ctz(rest));
    streams_.WakeInTime(entity, __builtin_ctz(rest), Events::kNever);
  }
  // If no communication lasts on, of the run or of others, what is left of kernels is rounded
  // even if others begin at once.
  const int32_t comms_now = overlap_.of(entity).comms;
  if (comms == comms_now && !run.OthersLastThrough(events_.now())) {
    kernels_.SetSlow(entity, false);
  }
  kernels_.SetSlow(entity, comms_now > 0);
  overlap_.Doubt(entity);
}

void LayerRuns::Resume(int32_t entity, int stream, const LayerStop::Stream& at, int64_t origin) {
  const int32_t cursor = CursorOf(entity, stream);
  const Streams::OpenLayer layer = streams_.Open(entity, streams_.cursor(cursor));
  const int32_t task = streams_.TaskAt(cursor);
  if (layer.block->kind[task] == TaskKind::kKernel) {
    kernels_.Resume(entity, stream, layer, origin + at.since, at.left, at.slow);
    return;
  }
  const LayerRun& run = streams_.run(entity);
  const int32_t place = at.rank == LayerConditions::kBehind ? run.conditions.Behind()->task : task;
  transfers_.Resume(cursor, variants_[run.variant].groups[place], at, origin);
}

void LayerRuns::OnLoad(int32_t group) {
  if (!enabled_) return;
  for (const Fluid::Use& load : in_.sim.LoadsOf(in_.sim.groups[group])) {
    for (const int32_t cursor : transfers_.contention().CursorsOn(load.resource)) {
      // The stream may load it at other times alone.
      if (streams_.cursor(cursor).state == StreamCursor::kInLayerRun &&
          variants_.Loads(streams_.run(EntityOf(cursor)).variant, load.resource)) {
        Dissolve(EntityOf(cursor));
      }
    }
  }
}

void LayerRuns::Describe(int32_t entity, Snapshot& snapshot) const {
  const LayerRun& run = streams_.run(entity);
  snapshot.Exact(run.active);
  if (!run.active) return;
  snapshot.At(entity, run.instance, kCompute);
  snapshot.Exact(run.first_layer);
  snapshot.Exact(run.layers);
  snapshot.Exact(run.partial);
  snapshot.Exact(run.streams);
  snapshot.Exact(run.behind);
  snapshot.Time(run.begin);
  snapshot.Exact(run.conditions.host);
  for (const int64_t toggle : run.conditions.toggles) snapshot.Exact(toggle);
  for (const LayerConditions::Ahead& ahead : run.conditions.ahead) {
    snapshot.Exact(ahead.stream);
    snapshot.Exact(ahead.rank);
    snapshot.Exact(ahead.runs);
    snapshot.Exact(ahead.since);
    snapshot.Wide(ahead.work_left);
    snapshot.Exact(ahead.task);
  }
}

}  // namespace plancast
