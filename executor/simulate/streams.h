#ifndef PLANCAST_EXECUTOR_SIMULATE_STREAMS_H_
#define PLANCAST_EXECUTOR_SIMULATE_STREAMS_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/events.h"
#include "executor/simulate/layer/layer_run.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/stream_cursor.h"
#include "executor/simulate/trace.h"

namespace plancast {

// How far all streams have come, when their tasks began and ended, and which streams wait
// for which.
class Streams {
 public:
  static constexpr int64_t kUnknown = SimTrace::kUnknown;
  // The times of a layer whose tasks run one by one. Before the starts lie its in-ports and its
  // gate, of which kUnknown says that they may not be over. Valid until another layer is opened.
  struct OpenLayer {
    const Block* block;
    const BlockIndex* index;
    int64_t* start;
    int64_t* end;
    int64_t* ports;
  };

  // `memory`: a trace that is done with, whose columns are used again.
  Streams(const SimInput& in, SimTrace memory, Events& events);

  int32_t num_entities() const { return static_cast<int32_t>(entities_.size()); }
  const std::vector<StreamCursor>& cursors() const { return cursors_; }
  StreamCursor& cursor(int32_t cursor) { return cursors_[cursor]; }
  const StreamCursor& cursor(int32_t cursor) const { return cursors_[cursor]; }
  LayerRun& run(int32_t entity) { return entities_[entity].run; }
  const LayerRun& run(int32_t entity) const { return entities_[entity].run; }
  SimTrace& trace() { return trace_; }
  const SimTrace& trace() const { return trace_; }
  int32_t ProgramAt(int32_t cursor) const { return entities_[EntityOf(cursor)].program; }

  // Streams to look at: what they wait for may be over.
  void Wake(int32_t entity, uint32_t streams);
  // Takes the next of them; false: there are none.
  bool TakeReady(int32_t* entity, int* stream);
  // Wakes the streams that wait for what a stream has done by now.
  void WakeWaiting(int32_t entity, int stream) {
    const int32_t cursor = CursorOf(entity, stream);
    if (cursors_[cursor].place() > earliest_wait_[cursor]) WakeThoseThatWait(entity, stream);
  }
  // Has those wake that wait for what a stream is known to end before `until`.
  void WakeInTime(int32_t entity, int stream, int64_t until) {
    if (waiting_[CursorOf(entity, stream)] != 0) TimeThoseThatWait(entity, stream, until);
  }
  // A stream waits for a task of its entity.
  void BlockOn(int32_t entity, int stream, const TaskRef& blocker);
  // Finds again which streams of an entity wait for which.
  void FindWaiting(int32_t entity);

  // Whether the first task of a layer could begin, as far as other streams are concerned, or
  // others have begun with the layer (`asked`: false); else `blocker` is what it waits for.
  bool CanOpen(int32_t entity, int stream, bool* asked, TaskRef* blocker) const;
  OpenLayer Open(int32_t entity, const StreamCursor& at);
  // Whether all that the next task of a stream waits for on its entity is over; `blocker`: what is
  // not, otherwise.
  bool IsReady(int32_t entity, const StreamCursor& at, const OpenLayer& layer, int32_t task,
               TaskRef* blocker) const;
  // Whether all that a layer waits for at its in-ports and the gate is over.
  bool HasPorts(int32_t entity, const TaskRef& layer) const {
    return in_.index.LookAtPorts(entities_[entity].program, layer.instance, layer.layer,
                                 [&](const TaskRef& ref) { return IsOver(entity, ref); });
  }
  // The task that a cursor is at.
  int32_t TaskAt(int32_t cursor) const;
  // When a task ends as things stand, or kUnknown; may be after now.
  int64_t ExpectedEnd(int32_t entity, const TaskRef& ref) const;
  // The same of a task that is over by now.
  int64_t EndOf(int32_t entity, const TaskRef& ref) const {
    const int64_t end = ExpectedEnd(entity, ref);
    return end > events_.now() ? kUnknown : end;
  }
  // Whether a task is over by now: most often its stream says so.
  bool IsOver(int32_t entity, const TaskRef& ref) const {
    const Entity& own = entities_[entity];
    const BlockIndex& block = in_.index.block(own.instances[ref.instance].block);
    const int32_t at =
        cursors_[CursorOf(entity, static_cast<int>(block.stream[ref.task]))].instance;
    return at != ref.instance ? at > ref.instance : EndOf(entity, ref) != kUnknown;
  }
  // `tasks` more tasks of a stream are over, the last at `end`.
  void Advance(int32_t cursor, int32_t tasks, int64_t end);
  // A stream is through with layers of an instance: to the next one, if these were the last.
  void LeaveIfOver(int32_t cursor);

 private:
  void EnterInstance(int32_t cursor, int32_t position);
  // Has memory fetched that a stream of an entity will need, of instances that come.
  static constexpr int32_t kFetched = 8;  // the furthest
  void FetchAhead(int32_t entity, const ProgramIndex& program, const int32_t* coming);
  void WakeThoseThatWait(int32_t entity, int stream);
  void TimeThoseThatWait(int32_t entity, int stream, int64_t until);

  struct Entity {
    int32_t program = 0;
    const Instance* instances = nullptr;   // of its program
    const int64_t* layer_begin = nullptr;  // SimTrace::layer_begin of these
    bool listed = false;                   // in work_
    StreamMask ready = 0;                  // streams to look at
    LayerRun run;
  };

  // SimTrace::PieceOf.
  int32_t PieceOf(const Entity& entity, int32_t instance, int32_t layer) const {
    return trace_.piece_of[entity.layer_begin[instance] + layer];
  }

  const SimInput& in_;
  Events& events_;
  SimTrace trace_;
  std::vector<StreamCursor> cursors_;
  std::vector<Entity> entities_;
  std::vector<int32_t> work_;           // entities with streams to look at
  int32_t working_ = -1;                // that of TakeReady
  std::vector<StreamMask> waiting_;     // per cursor: streams that wait for it
  std::vector<int64_t> earliest_wait_;  // per cursor: first place that another waits for
};

// What every event asks for is inlined.

inline void Streams::Wake(int32_t entity, uint32_t streams) {
  Entity& own = entities_[entity];
  own.ready |= static_cast<StreamMask>(streams);
  if (own.listed) return;
  own.listed = true;
  work_.push_back(entity);
}

inline int32_t Streams::TaskAt(int32_t cursor) const {
  const StreamCursor& at = cursors_[cursor];
  const BlockIndex& block =
      in_.index.block(entities_[EntityOf(cursor)].instances[at.instance].block);
  return block.order[block.order_begin[StreamOf(cursor)] + at.rank];
}

inline int64_t Streams::ExpectedEnd(int32_t entity, const TaskRef& ref) const {
  const Entity& own = entities_[entity];
  const int32_t size = in_.index.block(own.instances[ref.instance].block).size;
  const int32_t piece = PieceOf(own, ref.instance, ref.layer);
  if (piece >= 0) {
    const int64_t end = trace_.TimeIn(trace_.pieces[piece], ref.layer, size, ref.task);
    if (end != kUnknown) return end;
  }
  const LayerRun& run = own.run;
  const int32_t layer = ref.layer - run.first_layer;
  if (!run.active || ref.instance != run.instance || layer < 0 || layer >= run.layers) {
    return kUnknown;
  }
  return run.begin + run.period * layer + run.outcome->times[size + ref.task];
}

inline void Streams::Advance(int32_t cursor, int32_t tasks, int64_t end) {
  StreamCursor& own = cursors_[cursor];
  const Instance& instance = entities_[EntityOf(cursor)].instances[own.instance];
  own.last_end = end;
  own.rank += tasks;
  if (own.rank < in_.index.block(instance.block).Count(StreamOf(cursor))) return;
  own.rank = 0;
  ++own.layer;
  LeaveIfOver(cursor);
}

inline void Streams::LeaveIfOver(int32_t cursor) {
  const StreamCursor& own = cursors_[cursor];
  if (own.layer < entities_[EntityOf(cursor)].instances[own.instance].layer_count) return;
  EnterInstance(cursor, own.position + 1);
}

inline Streams::OpenLayer Streams::Open(int32_t entity, const StreamCursor& at) {
  const Entity& own = entities_[entity];
  const int32_t block = own.instances[at.instance].block;
  const BlockIndex& index = in_.index.block(block);
  const int32_t size = index.size;
  int32_t piece = PieceOf(own, at.instance, at.layer);
  if (piece < 0) {
    const int64_t ports = index.num_in_ports + 1;
    Piece fresh;
    fresh.first_layer = at.layer;
    fresh.start = static_cast<int64_t>(trace_.times.size()) + ports;
    trace_.times.resize(fresh.start + 2 * size, kUnknown);
    piece = trace_.Add(entity, at.instance, fresh);
    trace_.stepped_tasks[entity] += size;
  }
  int64_t* const start = trace_.times.data() + trace_.pieces[piece].start;
  return {&in_.graph.blocks[block], &index, start, start + size, start - index.num_in_ports - 1};
}

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_STREAMS_H_
