#ifndef PLANCAST_EXECUTOR_ATTRIBUTION_CAUSES_H_
#define PLANCAST_EXECUTOR_ATTRIBUTION_CAUSES_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/index/counterparts.h"
#include "executor/simulate/simulate.h"

namespace plancast {

// What a task started on.
struct Cause {
  enum Kind : uint8_t {
    kBeginning,  // nothing but the beginning of the iteration
    kTask,       // a task of the same entity
    kHost,       // its launch; `ref`: the task that the host waited for before, if any
    kPeer,       // the entity that came last to a communication, with its task
  };
  Kind kind = kBeginning;
  int32_t entity = 0;
  TaskRef ref;
};

// When the host launches the tasks of a layer: from `zero_ps` on, unless it waits in between.
struct LayerClock {
  bool known = false;
  int64_t zero_ps = 0;
};

// Answers from times alone, so that traces hold none.
class Causes {
 public:
  Causes(const SimInput& input, const SimTrace& trace)
      : in_(input), trace_(trace), counterparts_(input.graph, input.uses, input.index) {}

  int64_t StartOf(int32_t entity, const TaskRef& ref) const { return trace_.StartOf(entity, ref); }
  int64_t EndOf(int32_t entity, const TaskRef& ref) const {
    return trace_.EndOf(entity, ref, in_.index.BlockAt(in_.ProgramOf(entity), ref.instance).size);
  }
  // Of several that ended when the task started: its predecessor in the stream
  // goes first, then what it waits for by stream, the host, a peer (the first
  // entity).
  Cause Of(int32_t entity, const TaskRef& ref) const {
    return Of(entity, ref, StartOf(entity, ref));
  }
  // `start`: of the task.
  Cause Of(int32_t entity, const TaskRef& ref, int64_t start) const;
  // Which task of its own layer it is, if one of those that go before all others; -1: none.
  // `start`: of the layer's tasks, before their ends.
  static int32_t InLayer(const BlockIndex& index, const int64_t* start, int32_t task);
  // The part at the end of a kernel, which ran from `start` to `end`, in which it only waited for
  // launches of its own. `clock`: of its layer, of nothing so far.
  int64_t LaunchTail(int32_t entity, const TaskRef& ref, int64_t start, int64_t end,
                     LayerClock* clock) const;
  int64_t LaunchTail(int32_t entity, const TaskRef& ref) const {
    LayerClock clock;
    return LaunchTail(entity, ref, StartOf(entity, ref), EndOf(entity, ref), &clock);
  }

 private:
  // Whether a task of the same layer, of those that go before all others, is it.
  bool OfOwnLayer(int32_t entity, const TaskRef& ref, Cause* cause) const;
  // When a task that starts at `start` could have for all that its entity knows, and on what.
  int64_t Arrival(int32_t entity, const TaskRef& ref, int64_t start, Cause* cause) const;

  const SimInput& in_;
  const SimTrace& trace_;
  mutable Counterparts counterparts_;
};

// Times and causes of all tasks of an entity in issue order. Causes as numbers in
// issue order, or kBeginning, kHost, PeerCause(entity).
struct UnfoldedTrace {
  static constexpr int64_t kBeginning = -1;
  static constexpr int64_t kHost = -2;
  static constexpr int64_t PeerCause(int32_t entity) { return -3 - entity; }

  std::vector<int64_t> start, end, cause;
};
UnfoldedTrace Unfold(const SimInput& input, const SimTrace& trace, int32_t entity);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_ATTRIBUTION_CAUSES_H_
