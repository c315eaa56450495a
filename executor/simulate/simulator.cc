#include "executor/simulate/simulator.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "executor/simulate/clock.h"
#include "executor/simulate/deadlock.h"

namespace plancast {
namespace {

// When the first task of the compute stream starts; without one, the beginning of all.
int64_t FirstStart(const SimInput& in, const SimTrace& trace, int32_t entity) {
  const int32_t program = in.ProgramOf(entity);
  const ProgramIndex& index = in.index.program(program);
  const int32_t first = index.stream_begin[kCompute];
  if (first == index.stream_begin[kCompute + 1]) return in.hosts[program].start_ps;
  const int32_t instance = index.instances_of_streams[first];
  const BlockIndex& block = in.index.BlockAt(program, instance);
  return trace.StartOf(entity, {instance, 0, block.order[block.order_begin[kCompute]]});
}

// Fills in how long an iteration takes, of a trace that is complete but for that: until the last
// task ends. Where iterations of one shape overlap, an entity's own lasts from its first kernel,
// and the fixed work of its host before that, to its last task. The next begins there, so they
// follow each other at the longest of these (Qi et al. 2023, "Zero Bubble Pipeline Parallelism",
// section 4).
void TimeIteration(const SimInput& in, SimTrace* trace) {
  const auto entities = static_cast<int32_t>(in.sim.entities.size());
  for (int32_t e = 0; e < entities && in.graph.overlaps_iterations; ++e) {
    trace->begins.push_back(FirstStart(in, *trace, e) - in.HostOf(e).start_ps);
  }
  for (int32_t e = 0; e < entities; ++e) {
    const int64_t own = trace->FinishOf(e) - trace->BeginOf(e);
    trace->makespan_ps = std::max(trace->makespan_ps, own);
  }
  for (const HostParams& host : in.hosts) {
    trace->makespan_ps = std::max(trace->makespan_ps, host.start_ps);
  }
}

}  // namespace

Simulator::Simulator(const SimInput& in, SimTrace memory)
    : in_(in),
      streams_(in, std::move(memory), events_),
      overlap_(in),
      hosts_(in, streams_, events_),
      kernels_(in, streams_, hosts_, overlap_, events_),
      runs_(in, streams_, hosts_, kernels_, transfers_, overlap_, events_),
      transfers_(in, streams_, kernels_, overlap_, events_, runs_),
      steady_(in, streams_, hosts_, kernels_, transfers_, runs_, overlap_, events_) {}

absl::StatusOr<SimTrace> Simulator::Run() && {
  RETURN_IF_ERROR(CheckClock(in_, transfers_.alone_ps()));
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    streams_.Wake(e, (1u << kNumStreams) - 1);
  }
  GoOn();
  while (true) {
    const int64_t next = std::min(transfers_.NextEnd(), events_.next());
    if (next > kLatestPs) break;
    events_.AdvanceTo(next);
    transfers_.EndUntil(next);
    while (events_.IsNext(next, Events::kEnds)) Handle(events_.Pop());
    while (events_.IsNext(next, Events::kBegins)) Handle(events_.Pop());
    GoOn();
    if (steady_.Look()) GoOn();
  }
  if (transfers_.AnyShares() || !events_.empty()) return ClockError();
  SimTrace& trace = streams_.trace();
  for (const StreamCursor& cursor : streams_.cursors()) {
    if (!cursor.done()) return DeadlockError(in_, streams_.cursors());
    trace.stream_end.push_back(cursor.last_end);
  }
  TimeIteration(in_, &trace);
  return std::move(trace);
}

void Simulator::Handle(const Events::Event& event) {
  if (event.slot == Events::kRunEnd) return runs_.End(event.entity);
  if (event.slot == Events::kBusyChange) return overlap_.Doubt(event.entity);
  const int32_t cursor = CursorOf(event.entity, event.slot);
  switch (streams_.cursor(cursor).state) {
    case StreamCursor::kIdle:
    case StreamCursor::kBlocked:
    case StreamCursor::kLaunching:
      return streams_.Wake(event.entity, MaskOf(event.slot));
    case StreamCursor::kKernels:
      return kernels_.End(cursor);
    case StreamCursor::kInLayerRun:
      return runs_.Leave(cursor);
    case StreamCursor::kMeeting:
    case StreamCursor::kInFlight:
      return event.moment == Events::kBegins ? transfers_.Start(cursor) : transfers_.End(cursor);
  }
}

void Simulator::GoOn() {
  RunReadyStreams();
  while (runs_.Settle()) RunReadyStreams();
  if (overlap_.doubts()) transfers_.SettleSpeeds();
}

void Simulator::RunReadyStreams() {
  int32_t entity;
  int stream;
  while (streams_.TakeReady(&entity, &stream)) RunStream(entity, stream);
}

void Simulator::RunStream(int32_t entity, int stream) {
  StreamCursor& cursor = streams_.cursor(CursorOf(entity, stream));
  if (!cursor.waits()) return;
  Known known = Known::kNothing;
  if (cursor.state == StreamCursor::kLaunching && !events_.IsSet(entity, stream)) {
    known = Known::kLaunched;  // now
  } else if (cursor.state != StreamCursor::kIdle) {
    events_.Cancel(entity, stream);
  }
  cursor.state = StreamCursor::kIdle;
  const int64_t first = cursor.place();
  TaskRef blocker;
  while (!cursor.done()) {
    if (cursor.rank == 0 && (known == Known::kNothing || stream == kCompute)) {
      bool is_ready = false;
      const bool can_open = streams_.CanOpen(entity, stream, &is_ready, &blocker);
      // What its first task waits for of its own layer does not keep a layer from running at once.
      const bool may_run = can_open || blocker.instance == cursor.instance;
      if (may_run && stream == kCompute && runs_.enabled() &&
          runs_.Start(entity, cursor, is_ready && can_open)) {
        blocker = TaskRef();
        break;
      }
      if (!can_open) break;
      if (known == Known::kNothing && is_ready) known = Known::kReady;
    } else if (stream == kCompute && cursor.rank > 0 && runs_.enabled() &&
               runs_.Start(entity, cursor, /*can_open=*/false)) {
      blocker = TaskRef();
      break;
    }
    if (!RunLayer(entity, stream, known, &blocker)) break;
    known = Known::kNothing;
  }
  if (blocker.instance >= 0) streams_.BlockOn(entity, stream, blocker);
  if (cursor.place() > first) streams_.WakeWaiting(entity, stream);
}

bool Simulator::RunLayer(int32_t entity, int stream, Known known, TaskRef* blocker) {
  const int32_t program = in_.ProgramOf(entity);
  const HostParams& host = in_.hosts[program];
  StreamCursor& cursor = streams_.cursor(CursorOf(entity, stream));
  Streams::OpenLayer layer = streams_.Open(entity, cursor);
  const int64_t* columns = streams_.trace().times.data();
  HostClock::OfLayer clock;
  while (true) {
    const int32_t task = layer.index->order[layer.index->order_begin[stream] + cursor.rank];
    if (known == Known::kNothing && !streams_.IsReady(entity, cursor, layer, task, blocker)) {
      return false;
    }
    const bool is_comm = layer.block->kind[task] == TaskKind::kComm;
    // Streams are looked at when what they wait for is over.
    int64_t ready = std::max(events_.now(), host.start_ps);
    if (known == Known::kLaunched && is_comm) {
      hosts_.NoteWait(program);
    } else if (hosts_.Matters(program)) {
      if (!hosts_.Find(entity, cursor, task, *layer.index, &clock, blocker)) return false;
      const int64_t launched = clock.zero + host.launch_ps * layer.index->FirstLaunch(task);
      if (launched >= ready) hosts_.NoteWait(program);
      ready = std::max(ready, launched);
    }
    if (ready > events_.now()) {
      cursor.state = StreamCursor::kLaunching;
      events_.Schedule(entity, stream, ready, Events::kBegins);
      return false;
    }
    known = Known::kNothing;  // of the next
    layer.start[task] = ready;
    if (!is_comm) {
      kernels_.Start(entity, stream, layer, clock);
      if (cursor.state == StreamCursor::kKernels) return false;
    } else {
      if (!transfers_.Join(entity, stream, layer, task)) return false;
      // Opening layers of other members moves columns.
      if (cursor.rank > 0 && streams_.trace().times.data() != columns) {
        layer = streams_.Open(entity, cursor);
        columns = streams_.trace().times.data();
      }
    }
    if (cursor.rank == 0) return true;
  }
}

absl::StatusOr<SimTrace> Simulate(const SimInput& input, SimTrace memory) {
  return Simulator(input, std::move(memory)).Run();
}

}  // namespace plancast
