#include "executor/simulate/layer_runs.h"

#include <algorithm>

namespace plancast {
namespace {

// Of a layer that has begun: with fewer kernels left it is as cheap task by task.
constexpr int32_t kFewestKernels = 2;

}  // namespace

LayerRuns::LayerRuns(const SimInput& in, Streams& streams, HostClock& hosts, KernelChains& kernels,
                     Transfers& transfers, Overlap& overlap, Events& events)
    : in_(in),
      enabled_(in.shortcuts && in.jitter == nullptr),
      streams_(streams),
      hosts_(hosts),
      kernels_(kernels),
      transfers_(transfers),
      overlap_(overlap),
      events_(events),
      variants_(in, hosts, overlap, transfers),
      is_disturbed_(in.sim.entities.size()) {}

bool LayerRuns::Start(int32_t entity, const StreamCursor& at, bool can_open) {
  const int32_t program = in_.ProgramOf(entity);
  const Instance& instance = in_.index.InstanceOf(program, at.instance);
  const int32_t variant = variants_.Of(entity, instance.block);
  if (variant == LayerVariants::kNone) return false;
  const BlockIndex& index = in_.index.block(instance.block);
  const bool begun = at.rank > 0;
  if (begun && index.Count(kCompute) - at.rank < kFewestKernels) return false;
  LayerRun& run = streams_.run(entity);
  int32_t behind;
  if (events_.now() < in_.hosts[program].start_ps ||
      !StreamsAreThere(entity, at, index, variant, &behind)) {
    return false;
  }
  if (run.apart_at == TaskIndex::Place(at.instance, at.layer, 0)) return false;
  const TaskRef layer{at.instance, at.layer, 0};
  const bool has_ports = can_open && index.kernels_need_ports;
  if (!has_ports && !streams_.HasPorts(entity, layer)) return false;
  const LayerCosts& costs = variants_[variant].costs;
  if (!hosts_.FindCondition(entity, layer, index, costs, &run.conditions.host)) return false;
  if (costs.hosted && run.conditions.host > -costs.launch_ps * index.launches.back()) {
    hosts_.NoteWait(program);
  }
  if (begun ? !IsAlone(entity, at, instance.block, variant)
            : !OutrunRivals(entity, at, instance.block, variant)) {
    return false;
  }
  run.instance = at.instance;
  run.first_layer = at.layer;
  run.layers = 1;
  run.partial = streams_.trace().PieceOf(entity, at.instance, at.layer) >= 0;
  run.streams = index.streams;
  run.variant = variant;
  run.begin = events_.now();
  run.conditions.ahead.clear();
  run.behind = 0;
  if (run.partial || behind != LayerVariants::kNone) TakeOver(entity, at, index, behind);
  run.conditions.toggles.clear();
  FindToggles(entity);
  run.outcome = OutcomeOf(entity, nullptr);
  run.period = run.outcome->end;
  const bool changes = run.conditions.toggles.size() > 1;
  const bool once = run.partial || run.behind != 0 || changes;
  run.layers = CountLayers(entity, once ? 1 : instance.layer_count - at.layer);
  FindTail(entity);
  run.active = true;
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int32_t cursor = CursorOf(entity, __builtin_ctz(rest));
    streams_.cursor(cursor).state = StreamCursor::kInLayerRun;
    events_.Cancel(cursor);
  }
  Schedule(entity);
  return true;
}

bool LayerRuns::IsBehind(int32_t entity, const StreamCursor& at, int stream) const {
  const int32_t cursor_id = CursorOf(entity, stream);
  const StreamCursor& cursor = streams_.cursor(cursor_id);
  if (cursor.state != StreamCursor::kInFlight) return false;
  const int32_t program = in_.ProgramOf(entity);
  const Instance& instance = in_.index.InstanceOf(program, cursor.instance);
  if (cursor.rank + 1 < in_.index.block(instance.block).Count(stream)) return false;
  if (cursor.instance == at.instance) {
    if (cursor.layer + 1 != at.layer) return false;
  } else {
    const ProgramIndex& index = in_.index.program(program);
    const int32_t next = index.stream_begin[stream] + cursor.position + 1;
    if (at.layer > 0 || cursor.layer + 1 < instance.layer_count ||
        index.instances_of_streams[next] != at.instance) {
      return false;
    }
  }
  const SimGraph::Group& group = in_.sim.groups[transfers_.GroupAt(cursor_id)];
  return group.member_end - group.member_begin == 1;
}

bool LayerRuns::StreamsAreThere(int32_t entity, const StreamCursor& at, const BlockIndex& index,
                                int32_t variant, int32_t* behind) {
  const int64_t begin = TaskIndex::Place(at.instance, at.layer, 0);
  *behind = LayerVariants::kNone;
  for (uint32_t rest = index.streams & ~(1u << kCompute); rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const StreamCursor& cursor = streams_.cursor(CursorOf(entity, stream));
    if (cursor.place() < begin) {
      if (*behind != LayerVariants::kNone || !IsBehind(entity, at, stream)) return false;
      const int32_t group = transfers_.GroupAt(CursorOf(entity, stream));
      *behind = variants_.TaskBehind(variant, stream, group);
      if (*behind == LayerVariants::kNone) return false;
      continue;
    }
    if (cursor.instance != at.instance || cursor.layer != at.layer || cursor.waits()) continue;
    if (cursor.state != StreamCursor::kInFlight) return false;
  }
  return true;
}

bool LayerRuns::IsPart(int32_t entity, const StreamCursor& at, const BlockIndex& index,
                       int32_t variant, int32_t cursor) const {
  if (EntityOf(cursor) != entity || (index.streams >> StreamOf(cursor) & 1) == 0) return false;
  // A stream that is through with the layer loads links beside those that are not.
  return !variants_[variant].Shares() ||
         streams_.cursor(cursor).place() < TaskIndex::Place(at.instance, at.layer + 1, 0);
}

bool LayerRuns::IsAlone(int32_t entity, const StreamCursor& at, int32_t block,
                        int32_t variant) const {
  const absl::Span<const int32_t> rivals = variants_.RivalsOf(entity, block);
  return std::none_of(rivals.begin(), rivals.end(), [&](int32_t rival) {
    return !IsPart(entity, at, in_.index.block(block), variant, rival) &&
           (RunMeets(variant, rival) || LoadMeets(variant, rival));
  });
}

bool LayerRuns::RunMeets(int32_t variant, int32_t rival) const {
  return streams_.cursor(rival).state == StreamCursor::kInLayerRun &&
         variants_.Meet(variant, streams_.run(EntityOf(rival)).variant);
}

bool LayerRuns::LoadMeets(int32_t variant, int32_t rival) const {
  if (!transfers_.Loads(rival)) return false;
  const auto loads = in_.sim.LoadsOf(in_.sim.groups[transfers_.GroupAt(rival)]);
  return std::any_of(loads.begin(), loads.end(), [&](const Fluid::Use& load) {
    return variants_.Loads(variant, load.resource);
  });
}

bool LayerRuns::OutrunRivals(int32_t entity, const StreamCursor& at, int32_t block,
                             int32_t variant) {
  bool alone = true;
  for (const int32_t rival : variants_.RivalsOf(entity, block)) {
    if (IsPart(entity, at, in_.index.block(block), variant, rival)) continue;
    if (RunMeets(variant, rival)) {
      Dissolve(EntityOf(rival));
      alone = false;
    }
    alone = alone && !LoadMeets(variant, rival);
  }
  return alone;
}

void LayerRuns::TakeOver(int32_t entity, const StreamCursor& at, const BlockIndex& index,
                         int32_t behind) {
  LayerRun& run = streams_.run(entity);
  if (at.rank > 0) run.conditions.ahead.push_back({kCompute, at.rank});
  const int64_t begin = TaskIndex::Place(at.instance, at.layer, 0);
  for (uint32_t rest = index.streams & ~(1u << kCompute); rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t cursor_id = CursorOf(entity, stream);
    const StreamCursor& cursor = streams_.cursor(cursor_id);
    if (cursor.place() < begin) {
      LayerConditions::Ahead before{stream, LayerConditions::kBehind};
      transfers_.Take(cursor_id, &before);
      before.task = behind;
      run.conditions.ahead.push_back(before);
      run.behind = MaskOf(stream);
      continue;
    }
    if (cursor.instance != at.instance || cursor.layer != at.layer) {
      // All of it is over.
      run.conditions.ahead.push_back({stream, index.Count(stream)});
      run.streams &= static_cast<StreamMask>(~MaskOf(stream));
      continue;
    }
    const bool in_flight = cursor.state == StreamCursor::kInFlight;
    if (cursor.rank == 0 && !in_flight) continue;
    LayerConditions::Ahead ahead{stream, cursor.rank};
    if (in_flight) transfers_.Take(cursor_id, &ahead);
    run.conditions.ahead.push_back(ahead);
  }
}

int32_t LayerRuns::CountLayers(int32_t entity, int32_t left) const {
  const LayerRun& run = streams_.run(entity);
  if (left == 1) return 1;
  if (run.outcome->repeats == LayerOutcome::kUnasked) {
    run.outcome->repeats = Repeats(entity, run) ? LayerOutcome::kRepeats : LayerOutcome::kOnce;
  }
  return run.outcome->repeats == LayerOutcome::kRepeats ? left : 1;
}

void LayerRuns::FindTail(int32_t entity) {
  LayerRun& run = streams_.run(entity);
  const BlockIndex& index = in_.index.block(variants_[run.variant].block);
  run.tails = !EndsWhole(entity, run);
  run.kernels_end = run.outcome->times[index.size + index.Last(kCompute)];
}

bool LayerRuns::Repeats(int32_t entity, const LayerRun& run) const {
  const LayerCosts& costs = variants_[run.variant].costs;
  const BlockIndex& index = in_.index.block(variants_[run.variant].block);
  const int64_t launches = costs.launch_ps * index.launches.back();
  const int64_t host = std::max(run.conditions.host + launches - run.period, -launches);
  if (!EndsWhole(entity, run) || run.period == 0 || (costs.hosted && host != run.conditions.host)) {
    return false;
  }
  for (uint32_t rest = run.streams & ~(1u << kCompute); rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    if (run.outcome->times[index.size + index.Last(stream)] != run.period &&
        MayLeave(entity, run, stream)) {
      return false;
    }
  }
  return true;
}

LayerOutcome* LayerRuns::OutcomeOf(int32_t entity, const LayerOutcome* before) {
  const LayerRun& run = streams_.run(entity);
  const LayerVariants::Variant& variant = variants_[run.variant];
  const BlockIndex& index = in_.index.block(variant.block);
  // In the last place, when the stream that is behind no longer is.
  const int32_t times = 2 * index.size + 1;
  return outcomes_.Get(run.variant, run.conditions, times, [&](LayerOutcome& outcome) {
    const Block& block = in_.graph.blocks[variant.block];
    int64_t* const start = outcome.times;
    int64_t* const end = start + index.size;
    outcome.repeats = LayerOutcome::kUnasked;
    LayerTails& tails = variants_.TailsOf(run.variant);
    if (tails.empty() && (!run.conditions.toggles.empty() || !run.conditions.ahead.empty())) {
      tails = runner_.TailsOf(block, index, variant.costs);
    }
    outcome.end = before == nullptr
                      ? runner_.Run(block, index, variant.costs, run.conditions, start, end, tails)
                      : runner_.RunFrom(events_.now() - run.begin, before->times, block, index,
                                        variant.costs, run.conditions, start, end, tails);
  });
}

TaskRef LayerRuns::NextAfter(int32_t entity, const LayerRun& run, int stream) const {
  const int32_t program = in_.ProgramOf(entity);
  const BlockIndex& block = in_.index.BlockAt(program, run.instance);
  const int32_t layer = run.first_layer + run.layers;
  if (layer < in_.index.InstanceOf(program, run.instance).layer_count) {
    return {run.instance, layer, block.order[block.order_begin[stream]]};
  }
  const ProgramIndex& index = in_.index.program(program);
  const int32_t at =
      index.stream_begin[stream] + streams_.cursor(CursorOf(entity, stream)).position + 1;
  if (at == index.stream_begin[stream + 1]) return {};
  const int32_t instance = index.instances_of_streams[at];
  const BlockIndex& next = in_.index.BlockAt(program, instance);
  return {instance, 0, next.order[next.order_begin[stream]]};
}

bool LayerRuns::EndsWhole(int32_t entity, const LayerRun& run) const {
  const int32_t program = in_.ProgramOf(entity);
  const BlockIndex& block = in_.index.BlockAt(program, run.instance);
  const int64_t* const end = run.outcome->times + block.size;
  const int64_t computed = end[block.Last(kCompute)];
  if (computed == run.outcome->end) return true;
  const TaskRef next = NextAfter(entity, run, kCompute);
  if (next.instance < 0) return true;
  const auto waits_for = [&](const TaskRef& last) {
    return !in_.index.LookAtWaits(program, next,
                                  [&](const TaskRef& wait) { return !(wait == last); });
  };
  for (uint32_t rest = block.streams; rest != 0; rest &= rest - 1) {
    const TaskRef last{run.instance, run.first_layer + run.layers - 1,
                       block.Last(__builtin_ctz(rest))};
    if (end[last.task] > computed && !waits_for(last)) return false;
  }
  return true;
}

bool LayerRuns::MayLeave(int32_t entity, const LayerRun& run, int stream) const {
  const TaskRef next = NextAfter(entity, run, stream);
  if (next.instance < 0) return false;
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), next.instance);
  return (index.after_compute >> stream & 1) == 0;
}

}  // namespace plancast
