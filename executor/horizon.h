#ifndef PLANCAST_EXECUTOR_HORIZON_H_
#define PLANCAST_EXECUTOR_HORIZON_H_

#include <cstdint>
#include <vector>

#include "executor/simulate.h"

namespace plancast {

// How far the streams of all entities have come. A lane is a stream of an entity:
// entity * kNumStreams + stream.
struct Lanes {
  enum State : uint8_t {
    kIdle,     // to be looked at, or done
    kBlocked,  // on `blocker`, of the same entity
    kMeets,    // in a communication that not all members have come to
    kFlies,    // in one under way whose end depends on others
    kKernel,   // in a kernel whose end depends on communications
  };
  std::vector<int32_t> next;     // first task that is not over
  std::vector<State> state;      // of that task
  std::vector<int32_t> blocker;  // task
  std::vector<int64_t> bound;    // kFlies, kKernel: ends no earlier; others: nor begins
  std::vector<int64_t> flows;    // kFlies: when it begins to load links
};

// Lower bounds on when things begin that are not known yet: what ends before all
// of them is known. Nothing unknown happens before `now`.
class Horizon {
 public:
  // `alone_ps`: of each group's communication.
  Horizon(const SimInput& input, const SimTrace& trace, const std::vector<int64_t>& alone_ps,
          Lanes& lanes);

  // No communication of the entity that is not known yet begins, and none whose
  // end is not known ends, before this, but for what waits for the task that
  // `stream` is at. Looks closely only at what may be before `need`.
  int64_t Of(int32_t entity, int stream, int64_t now, int64_t need);
  // The same of one lane.
  int64_t OfLane(int32_t lane, int stream, int64_t now, int64_t need) {
    return OfLane(lane, stream, now, need, kDepth);
  }
  static constexpr int kNoStream = -1;

 private:
  static constexpr int kDepth = 4;  // of what waits for what

  std::vector<int64_t> WorkBefore(const SimGraph::Entity& entity,
                                  const std::vector<int64_t>& fastest) const;
  int64_t OfLane(int32_t lane, int stream, int64_t now, int64_t need, int depth);
  int64_t OfMeeting(int32_t lane, int64_t now) const;
  int64_t BeginOf(int32_t entity, int32_t task, int stream, int64_t now, int depth) const;
  int64_t EndOf(int32_t entity, int32_t task, int stream, int64_t now, int depth) const;
  const TaskTable& TableOf(int32_t entity) const {
    return in_.tables[in_.sim.entities[entity].program];
  }

  const SimInput& in_;
  const SimTrace& trace_;
  Lanes& lanes_;
  // The least time from the end of a task to that of a later one of its stream is
  // the difference: kernels, and communications that lie between two neighbours.
  // Per entity, equal ones shared.
  std::vector<std::vector<int64_t>> work_before_;
  std::vector<int32_t> work_of_;  // per entity
  // The task with which each party comes to a rendezvous.
  std::vector<int32_t> party_begin_, party_task_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_HORIZON_H_
