#ifndef PLANCAST_EXECUTOR_SIMULATE_EVENTS_H_
#define PLANCAST_EXECUTOR_SIMULATE_EVENTS_H_

#include <cstdint>
#include <limits>

#include "executor/sharing/indexed_heap.h"
#include "executor/simulate/stream_cursor.h"

namespace plancast {

// The time, and the events to come. Each entity has a slot for each stream and some of
// its own, each with at most one event. What ends at a point in time goes before what
// begins at it.
class Events {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  // Of an entity, after those of its streams: its layer run ends; it begins or ends to
  // run kernels.
  enum Slot : int { kRunEnd = kNumStreams, kBusyChange, kNumSlots };
  enum Moment : int64_t { kEnds, kBegins };
  struct Event {
    int32_t entity = 0;
    int slot = 0;
    Moment moment = kEnds;
  };

  int64_t now() const { return now_; }
  void AdvanceTo(int64_t time) { now_ = time; }
  bool empty() const { return heap_.empty(); }
  // When the next event is; kNever: there is none.
  int64_t next() const { return heap_.empty() ? kNever : heap_.least_key() >> 1; }
  bool IsNext(int64_t time, Moment moment) const {
    return heap_.least_key() == (time << 1 | moment);
  }
  Event Pop() {
    const int32_t id = heap_.least();
    const auto moment = static_cast<Moment>(heap_.least_key() & 1);
    heap_.Remove(id);
    return {id / kNumSlots, id % kNumSlots, moment};
  }

  void Schedule(int32_t entity, int slot, int64_t time, Moment moment) {
    heap_.Set(entity * kNumSlots + slot, time << 1 | moment);
  }
  void Cancel(int32_t entity, int slot) {
    const int32_t id = entity * kNumSlots + slot;
    if (heap_.Contains(id)) heap_.Remove(id);
  }
  // The same of a stream, by its cursor.
  void Schedule(int32_t cursor, int64_t time, Moment moment) {
    Schedule(EntityOf(cursor), StreamOf(cursor), time, moment);
  }
  void Cancel(int32_t cursor) { Cancel(EntityOf(cursor), StreamOf(cursor)); }

  bool IsSet(int32_t entity, int slot) const { return heap_.Contains(entity * kNumSlots + slot); }
  int64_t TimeOf(int32_t entity, int slot) const {
    return heap_.KeyOf(entity * kNumSlots + slot) >> 1;
  }
  Moment MomentOf(int32_t entity, int slot) const {
    return static_cast<Moment>(heap_.KeyOf(entity * kNumSlots + slot) & 1);
  }
  // It is so much later, and so are all events.
  void Shift(int64_t way) {
    heap_.Shift(way << 1);
    now_ += way;
  }

 private:
  int64_t now_ = 0;
  IndexedHeap heap_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_EVENTS_H_
