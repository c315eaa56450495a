// Copies of a block at once: from when all that a copy waits for is over, until
// all of it is, as one event.

#include <algorithm>
#include <utility>

#include "executor/simulate/simulator.h"

namespace plancast {
namespace {

constexpr int32_t kFewestTasks = 3;  // of a block that is worth it

bool Has(const TaskIndex::Refs& refs, const TaskRef& ref) {
  return std::find(refs.begin(), refs.end(), ref) != refs.end();
}

}  // namespace

void Simulator::AskWhole(int32_t entity, int32_t block_index, Whole& whole) {
  whole.variant = Whole::kNeverWhole;
  const int32_t program = in_.ProgramOf(entity);
  const plancast::Block& block = in_.graph.blocks[block_index];
  const BlockIndex& index = in_.index.block(block_index);
  constexpr StreamMask kKernels = MaskOf(kCompute);
  if (index.size < kFewestTasks || block.rendezvous_task >= 0 || index.syncs ||
      index.kernel_streams != kKernels ||
      (interferes_ && in_.index.program(program).kernel_streams != kKernels)) {
    return;
  }
  const int32_t row = sim_.entities[entity].price_row;
  Variant variant;
  CopyCosts& costs = variant.costs;
  costs.launch_ps = in_.hosts[program].launch_ps;
  costs.hosted = hosted_[program];
  costs.interferes = interferes_;
  variant.key = {row, costs.launch_ps, costs.hosted};
  std::vector<int32_t> rivals;
  StreamMask contended = 0;
  for (int32_t t = 0; t < index.size; ++t) {
    CopyCosts::Task& task = costs.tasks.emplace_back();
    variant.groups.push_back(-1);
    if (block.kind[t] == TaskKind::kKernel) {
      task.alone = in_.prices.Duration(row, block.spec[t]);
      task.slowdown_q20 = in_.SlowdownOf(block.spec[t]);
      continue;
    }
    const int32_t g = sim_.GroupOf(in_.uses.OfComm(program, block.spec[t]), entity);
    const SimGraph::Group& group = sim_.groups[g];
    if (group.member_end - group.member_begin != 1) return;
    const RealisedCollective& realised = in_.realised[group.realised];
    variant.groups.back() = g;
    task.alone = alone_[g];
    task.quiet = realised.quiet;
    task.delay = realised.delay_ps;
    task.work = ActivityKinds::Work(realised.work_bytes);
    task.rate_q16 = task.slow_rate_q16 = fluid_.AloneRateQ16(g);
    if (yields_ && !task.quiet) {
      task.slow_rate_q16 = fluid_.AloneRateQ16(g + static_cast<int32_t>(sim_.groups.size()));
    }
    variant.key.push_back(g);
    if (!contention_.of_group[g]) continue;
    contended |= MaskOf(block.stream[t]);
    for (const Fluid::Use& load : sim_.LoadsOf(group)) {
      const auto lanes = contention_.LanesOn(load.resource);
      rivals.insert(rivals.end(), lanes.begin(), lanes.end());
    }
  }
  // Streams of the copy that share links take them from each other.
  if ((contended & (contended - 1)) != 0) return;
  std::sort(rivals.begin(), rivals.end());
  rivals.erase(std::unique(rivals.begin(), rivals.end()), rivals.end());
  whole.rivals_begin = static_cast<int32_t>(rivals_.size());
  rivals_.insert(rivals_.end(), rivals.begin(), rivals.end());
  whole.rivals_end = static_cast<int32_t>(rivals_.size());
  for (const int32_t known : variants_of_[block_index]) {
    if (variants_[known].key == variant.key) whole.variant = known;
  }
  if (whole.variant >= 0) return;
  whole.variant = static_cast<int32_t>(variants_.size());
  variants_of_[block_index].push_back(whole.variant);
  variant.block = block_index;
  variants_.push_back(std::move(variant));
}

bool Simulator::FindClock(int32_t entity, const TaskRef& copy, const BlockIndex& index,
                          const CopyCosts& costs, int64_t* host) const {
  *host = 0;
  if (!costs.hosted) return true;
  const Launch launch = LaunchOf(in_.HostOf(entity), in_.index, in_.ProgramOf(entity), copy,
                                 [&](const TaskRef& ref) { return EndOf(entity, ref); });
  if (!launch.known) return false;
  const int64_t clock =
      launch.last_ps - costs.launch_ps * (index.launches[1] - index.launches[0]) - now_;
  *host = std::max(clock, -costs.launch_ps * index.launches.back());
  return true;
}

CopyOutcome* Simulator::OutcomeOf(int32_t entity, const CopyOutcome* before) {
  const CopyRun& run = entities_[entity].run;
  const Variant& variant = variants_[run.variant];
  const BlockIndex& index = in_.index.block(variant.block);
  return outcomes_.Get(run.variant, run.conditions, 2 * index.size, [&](CopyOutcome& outcome) {
    const plancast::Block& block = in_.graph.blocks[variant.block];
    int64_t* const start = outcome.times;
    int64_t* const end = start + index.size;
    outcome.repeats = CopyOutcome::kUnasked;
    outcome.end = before == nullptr
                      ? runner_.Run(block, index, variant.costs, run.conditions, start, end)
                      : runner_.RunFrom(now_ - run.begin, before->times, block, index,
                                        variant.costs, run.conditions, start, end);
  });
}

TaskRef Simulator::NextAfter(int32_t entity, const CopyRun& run, int stream) const {
  const int32_t program = in_.ProgramOf(entity);
  const BlockIndex& block = in_.index.BlockAt(program, run.instance);
  const int32_t copy = run.first_copy + run.copies;
  if (copy < in_.index.InstanceOf(program, run.instance).layer_count) {
    return {run.instance, copy, block.order[block.order_begin[stream]]};
  }
  const ProgramIndex& index = in_.index.program(program);
  const int32_t at = index.lane_begin[stream] + lanes_[entity * kNumStreams + stream].cursor + 1;
  if (at == index.lane_begin[stream + 1]) return {};
  const BlockIndex& next = in_.index.BlockAt(program, index.lane[at]);
  return {index.lane[at], 0, next.order[next.order_begin[stream]]};
}

bool Simulator::EndsWhole(int32_t entity, const CopyRun& run) const {
  const int32_t program = in_.ProgramOf(entity);
  const BlockIndex& block = in_.index.BlockAt(program, run.instance);
  const int64_t* const end = run.outcome->times + block.size;
  const int64_t computed = end[block.Last(kCompute)];
  if (computed == run.outcome->end) return true;
  const TaskRef next = NextAfter(entity, run, kCompute);
  if (next.instance < 0) return true;
  TaskIndex::Refs waits;
  in_.index.WaitsOf(program, next, waits);
  for (uint32_t rest = block.streams; rest != 0; rest &= rest - 1) {
    const TaskRef last{run.instance, run.first_copy + run.copies - 1,
                       block.Last(__builtin_ctz(rest))};
    if (end[last.task] > computed && !Has(waits, last)) return false;
  }
  return true;
}

bool Simulator::MayLeave(int32_t entity, const CopyRun& run, int stream) const {
  const TaskRef next = NextAfter(entity, run, stream);
  if (next.instance < 0) return false;
  const plancast::Block& block = in_.BlockAt(entity, next.instance);
  const BlockIndex& index = in_.index.BlockAt(in_.ProgramOf(entity), next.instance);
  for (int32_t d = index.dep_begin[next.task]; d < index.dep_begin[next.task + 1]; ++d) {
    if (block.stream[index.deps[d]] == StreamKind::kCompute) return false;
  }
  return true;
}

bool Simulator::LanesAreThere(int32_t entity, const Lane& at, const BlockIndex& index) const {
  const int64_t begin = TaskIndex::Place(at.instance, at.copy, 0);
  for (uint32_t rest = index.streams & ~(1u << kCompute); rest != 0; rest &= rest - 1) {
    const int32_t lane_index = entity * kNumStreams + __builtin_ctz(rest);
    const Lane& lane = lanes_[lane_index];
    if (lane.place() < begin) return false;
    if (lane.instance != at.instance || lane.copy != at.copy || lane.state <= Lane::kWaits) {
      continue;
    }
    if (lane.state != Lane::kFlies) return false;
  }
  return true;
}

CopyConditions::Ahead Simulator::TakeOver(int32_t lane_index) {
  Lane& lane = lanes_[lane_index];
  CopyConditions::Ahead ahead;
  ahead.stream = lane_index % kNumStreams;
  ahead.rank = lane.rank;
  if (lane.state != Lane::kFlies) return ahead;
  lane.state = Lane::kRuns;
  Flight& flight = flights_[lane_index];
  Entity& entity = entities_[lane_index / kNumStreams];
  ahead.runs = true;
  Cancel(SlotOf(lane_index));
  const bool quiet = IsQuiet(flight.group);
  if (interferes_ && !quiet) {
    --entity.comms;
    if (Shares(flight)) --entity.open;
    FindOver(lane_index / kNumStreams);
  }
  ahead.work_left = flight.work_left;
  if (flight.flows) {
    flight.flows = false;
    if (yields_ && !quiet) --entity.flows;
    ahead.work_left =
        (flight.activity >= 0 ? fluid_.Take(flight.activity) : flight.progress).LeftAt(now_);
  } else if (now_ < flight.transfer_at) {
    ahead.since = flight.transfer_at - now_;
  } else {
    Fluid::Progress progress;
    progress.left = flight.work_left;
    progress.rate_q16 = fluid_.AloneRateQ16(flight.group);
    progress.since = flight.transfer_at;
    ahead.work_left = progress.LeftAt(now_);
  }
  return ahead;
}

bool Simulator::RunCopies(int32_t entity, const Lane& at) {
  const int32_t program = in_.ProgramOf(entity);
  const Instance& instance = in_.index.InstanceOf(program, at.instance);
  Whole& whole = WholeOf(entity, instance.block);
  if (whole.variant == Whole::kUnasked) AskWhole(entity, instance.block, whole);
  if (whole.variant < 0) return false;
  const BlockIndex& index = in_.index.block(instance.block);
  if (now_ < in_.hosts[program].start_ps || entities_[entity].run.refused == at.place() ||
      !LanesAreThere(entity, at, index)) {
    return false;
  }
  const TaskRef copy{at.instance, at.copy, 0};
  TaskRef blocker;
  const int32_t ports = in_.graph.blocks[instance.block].num_in_ports;
  for (int32_t port = 0; port <= ports; ++port) {
    if (EndOfPort(entity, copy, port, &blocker) == kUnknown) return false;
  }
  const CopyCosts& costs = variants_[whole.variant].costs;
  CopyRun& run = entities_[entity].run;
  if (!FindClock(entity, copy, index, costs, &run.conditions.host)) return false;
  if (costs.hosted && run.conditions.host > -costs.launch_ps * index.launches.back()) {
    host_bound_ = 2;
  }
  if (!OutrunRivals(entity, index, whole)) return false;
  run.instance = at.instance;
  run.first_copy = at.copy;
  run.copies = 1;
  run.partial = trace_.PieceOf(entity, at.instance, at.copy) >= 0;
  run.streams = index.streams;
  run.variant = whole.variant;
  run.begin = now_;
  run.conditions.ahead.clear();
  for (uint32_t rest = index.streams & ~(1u << kCompute); rest != 0 && run.partial;
       rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const Lane& lane = lanes_[entity * kNumStreams + stream];
    if (lane.instance != at.instance || lane.copy != at.copy) {
      // All of it is over.
      run.conditions.ahead.push_back({stream, index.Count(stream)});
      run.streams &= static_cast<StreamMask>(~MaskOf(stream));
    } else if (lane.rank > 0 || lane.state == Lane::kFlies) {
      run.conditions.ahead.push_back(TakeOver(entity * kNumStreams + stream));
    }
  }
  run.conditions.toggles.clear();
  FindToggles(entity);
  run.outcome = OutcomeOf(entity, nullptr);
  run.period = run.outcome->end;
  const bool changes = run.conditions.toggles.size() > 1;
  const int32_t left = run.partial || changes ? 1 : instance.layer_count - at.copy;
  if (left > 1 && run.outcome->repeats == CopyOutcome::kUnasked) {
    const int64_t launches = costs.launch_ps * index.launches.back();
    const int64_t host = std::max(run.conditions.host + launches - run.period, -launches);
    bool repeats =
        EndsWhole(entity, run) && run.period > 0 && (!costs.hosted || host == run.conditions.host);
    for (uint32_t rest = run.streams & ~(1u << kCompute); rest != 0; rest &= rest - 1) {
      const int stream = __builtin_ctz(rest);
      repeats = repeats && (run.outcome->times[index.size + index.Last(stream)] == run.period ||
                            !MayLeave(entity, run, stream));
    }
    run.outcome->repeats = repeats ? CopyOutcome::kRepeats : CopyOutcome::kOnce;
  }
  if (left > 1 && run.outcome->repeats == CopyOutcome::kRepeats) {
    run.copies = left;
    if (!EndsWhole(entity, run)) run.copies = left - 1;
  } else if (!EndsWhole(entity, run)) {
    if (run.conditions.ahead.empty()) {
      outcomes_.Release(run.outcome);
    } else {
      DissolveRun(entity);
    }
    run.refused = at.place();
    return false;
  }
  run.active = true;
  for (uint32_t rest = run.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    lanes_[entity * kNumStreams + stream].state = Lane::kRuns;
    Cancel(entity * kNumSlots + stream);
  }
  StartRun(entity);
  return true;
}

bool Simulator::OutrunRivals(int32_t entity, const BlockIndex& index, const Whole& whole) {
  bool alone = true;
  for (int32_t r = whole.rivals_begin; r < whole.rivals_end; ++r) {
    const int32_t rival = rivals_[r], other = rival / kNumStreams;
    if (other == entity && (index.streams >> rival % kNumStreams & 1) != 0) continue;
    if (lanes_[rival].state == Lane::kRuns) {
      DissolveRun(other);
      alone = false;
    }
    alone = alone && !(lanes_[rival].state == Lane::kFlies && flights_[flight_of_[rival]].flows);
  }
  return alone;
}

}  // namespace plancast
