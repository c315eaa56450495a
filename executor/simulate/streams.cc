#include "executor/simulate/streams.h"

#include <algorithm>
#include <utility>

namespace plancast {

Streams::Streams(const SimInput& in, SimTrace memory, Events& events)
    : in_(in), events_(events), trace_(std::move(memory)) {
  trace_.Clear();
  const size_t entities = in.sim.entities.size(), cursors = entities * kNumStreams;
  int64_t layers = 0;
  cursors_.resize(cursors);
  entities_.resize(entities);
  for (size_t e = 0; e < entities; ++e) {
    trace_.instance_begin.push_back(static_cast<int64_t>(trace_.layer_begin.size()));
    for (const Instance& instance : in.graph.programs[in.sim.entities[e].program].instances) {
      trace_.layer_begin.push_back(layers);
      layers += instance.layer_count;
    }
  }
  trace_.piece_of.assign(layers, -1);
  trace_.stepped_tasks.assign(entities, 0);
  for (size_t e = 0; e < entities; ++e) {
    Entity& own = entities_[e];
    own.program = in.sim.entities[e].program;
    own.instances = in.graph.programs[own.program].instances.data();
    own.layer_begin = trace_.layer_begin.data() + trace_.instance_begin[e];
    for (int s = 0; s < kNumStreams; ++s) EnterInstance(CursorOf(static_cast<int32_t>(e), s), 0);
  }
  waiting_.resize(cursors);
  earliest_wait_.resize(cursors, Events::kNever);
  work_.reserve(entities);
}

void Streams::EnterInstance(int32_t cursor, int32_t position) {
  const ProgramIndex& program = in_.index.program(ProgramAt(cursor));
  const int stream = StreamOf(cursor);
  StreamCursor& own = cursors_[cursor];
  own.position = position;
  own.layer = own.rank = 0;
  const int32_t at = program.stream_begin[stream] + position;
  own.instance = at < program.stream_begin[stream + 1] ? program.instances_of_streams[at]
                                                       : StreamCursor::kDone;
  if (at + kFetched < program.stream_begin[stream + 1]) {
    FetchAhead(EntityOf(cursor), program, &program.instances_of_streams[at]);
  }
}

// Hundreds of streams go through columns of their own, too many for the hardware to foresee.
void Streams::FetchAhead(int32_t entity, const ProgramIndex& program, const int32_t* coming) {
  const Entity& own = entities_[entity];
  const int32_t later = coming[kFetched], sooner = coming[kFetched / 2];
  __builtin_prefetch(own.instances + later);
  __builtin_prefetch(own.layer_begin + later);
  __builtin_prefetch(&program.launches_before[later]);
  __builtin_prefetch(&program.sync_before[later]);
  __builtin_prefetch(program.joins + own.instances[sooner].join_begin);
  __builtin_prefetch(&trace_.piece_of[own.layer_begin[sooner]], /*rw=*/1);
}

bool Streams::TakeReady(int32_t* entity, int* stream) {
  while (working_ < 0 || entities_[working_].ready == 0) {
    if (working_ >= 0) entities_[working_].listed = false;
    working_ = -1;
    if (work_.empty()) return false;
    working_ = work_.back();
    work_.pop_back();
  }
  *entity = working_;
  *stream = __builtin_ctz(entities_[working_].ready);
  if (*stream == kCompute) {
    // What streams begin now that have yet to come to a layer, this may take over.
    const StreamCursor& kernels = cursors_[CursorOf(working_, kCompute)];
    const int64_t layer = TaskIndex::Place(kernels.instance, kernels.layer, 0);
    for (uint32_t rest = entities_[working_].ready ^ 1u << kCompute; rest != 0; rest &= rest - 1) {
      const int other = __builtin_ctz(rest);
      if (cursors_[CursorOf(working_, other)].place() >= layer) continue;
      *stream = other;
      break;
    }
  }
  entities_[working_].ready ^= MaskOf(*stream);
  return true;
}

void Streams::WakeThoseThatWait(int32_t entity, int stream) {
  const int32_t cursor = CursorOf(entity, stream);
  const int64_t place = cursors_[cursor].place();
  const int32_t program = in_.ProgramOf(entity);
  uint32_t woken = 0;
  earliest_wait_[cursor] = Events::kNever;
  for (uint32_t rest = waiting_[cursor]; rest != 0; rest &= rest - 1) {
    const int other = __builtin_ctz(rest);
    const int64_t blocker = in_.index.PlaceOf(program, cursors_[CursorOf(entity, other)].blocker);
    if (blocker < place) {
      woken |= 1u << other;
    } else {
      earliest_wait_[cursor] = std::min(earliest_wait_[cursor], blocker);
    }
  }
  waiting_[cursor] ^= static_cast<StreamMask>(woken);
  Wake(entity, woken);
}

void Streams::TimeThoseThatWait(int32_t entity, int stream, int64_t until) {
  for (uint32_t rest = waiting_[CursorOf(entity, stream)]; rest != 0; rest &= rest - 1) {
    const int32_t other = CursorOf(entity, __builtin_ctz(rest));
    const StreamCursor& cursor = cursors_[other];
    if (cursor.state != StreamCursor::kBlocked || cursor.blocking_stream != stream) continue;
    const int64_t expected = ExpectedEnd(entity, cursor.blocker);
    // What ends with all wakes by itself.
    if (expected == kUnknown || expected >= until) continue;
    events_.Schedule(other, std::max(expected, events_.now()), Events::kBegins);
  }
}

void Streams::BlockOn(int32_t entity, int stream, const TaskRef& blocker) {
  const int32_t program = in_.ProgramOf(entity);
  const int other = in_.index.StreamOf(program, blocker);
  const int32_t other_cursor = CursorOf(entity, other);
  waiting_[other_cursor] |= MaskOf(stream);
  earliest_wait_[other_cursor] =
      std::min(earliest_wait_[other_cursor], in_.index.PlaceOf(program, blocker));
  StreamCursor& cursor = cursors_[CursorOf(entity, stream)];
  cursor.state = StreamCursor::kBlocked;
  cursor.blocker = blocker;
  cursor.blocking_stream = static_cast<uint8_t>(other);
  const int64_t expected = ExpectedEnd(entity, blocker);
  if (expected != kUnknown) events_.Schedule(entity, stream, expected, Events::kBegins);
}

void Streams::FindWaiting(int32_t entity) {
  const int32_t first = CursorOf(entity, 0);
  std::fill_n(waiting_.begin() + first, kNumStreams, StreamMask{0});
  std::fill_n(earliest_wait_.begin() + first, kNumStreams, Events::kNever);
  for (int s = 0; s < kNumStreams; ++s) {
    const StreamCursor& cursor = cursors_[first + s];
    if (cursor.state != StreamCursor::kBlocked) continue;
    const int32_t other = first + cursor.blocking_stream;
    waiting_[other] |= MaskOf(s);
    earliest_wait_[other] =
        std::min(earliest_wait_[other], in_.index.PlaceOf(in_.ProgramOf(entity), cursor.blocker));
  }
}

bool Streams::CanOpen(int32_t entity, int stream, bool* asked, TaskRef* blocker) const {
  const StreamCursor& at = cursors_[CursorOf(entity, stream)];
  const Entity& own = entities_[entity];
  *asked = PieceOf(own, at.instance, at.layer) < 0;
  if (!*asked) return true;
  const BlockIndex& index = in_.index.block(own.instances[at.instance].block);
  const int32_t task = index.order[index.order_begin[stream]];
  if (index.dep_begin[task] < index.dep_begin[task + 1]) {
    *blocker = {at.instance, at.layer, index.deps[index.dep_begin[task]]};
    return false;
  }
  return in_.index.LookAtEntry(own.program, at.instance, at.layer, task, [&](const TaskRef& ref) {
    const bool over = IsOver(entity, ref);
    if (!over) *blocker = ref;
    return over;
  });
}

bool Streams::IsReady(int32_t entity, const StreamCursor& at, const OpenLayer& layer, int32_t task,
                      TaskRef* blocker) const {
  const BlockIndex& index = *layer.index;
  for (int32_t d = index.dep_begin[task]; d < index.dep_begin[task + 1]; ++d) {
    const int32_t dep = index.deps[d];
    if (layer.end[dep] == kUnknown || layer.end[dep] > events_.now()) {
      *blocker = {at.instance, at.layer, dep};
      return false;
    }
  }
  const auto is_over = [&](int32_t port) {
    if (layer.ports[port] != kUnknown) return true;
    const bool over = in_.index.LookAtPort(entities_[entity].program, at.instance, at.layer, port,
                                           [&](const TaskRef& ref) {
                                             const bool task_over = IsOver(entity, ref);
                                             if (!task_over) *blocker = ref;
                                             return task_over;
                                           });
    if (over) layer.ports[port] = events_.now();
    return over;
  };
  for (int32_t p = index.port_begin[task]; p < index.port_begin[task + 1]; ++p) {
    if (!is_over(index.ports[p])) return false;
  }
  return at.rank > 0 || at.layer > 0 || is_over(index.num_in_ports);
}

}  // namespace plancast
