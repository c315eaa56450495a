#ifndef PLANCAST_EXECUTOR_HORIZON_H_
#define PLANCAST_EXECUTOR_HORIZON_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "executor/simulate.h"

namespace plancast {

// How far a stream of an entity has come. A lane's number is
// entity * kNumStreams + stream.
struct Lane {
  enum State : uint8_t {
    kIdle,     // to be looked at, or done
    kBlocked,  // on `blocker`, of the same entity
    kMeets,    // in a communication that not all members have come to
    kFlies,    // in one under way whose end depends on others
    kKernel,   // in a kernel whose end depends on communications
  };
  // The first task that is not over: which instance of the stream, of the
  // program, which copy, and which task of the stream in it. Done: instance is
  // kDone.
  static constexpr int32_t kDone = std::numeric_limits<int32_t>::max() >> 6;
  int32_t cursor = 0, instance = 0, copy = 0, rank = 0;
  State state = kIdle;
  uint8_t blocking_stream = 0;
  TaskRef blocker;
  int64_t last_end = 0;  // of the task before
  int64_t bound = 0;     // kFlies, kKernel: ends no earlier; others: nor begins
  int64_t flows = 0;     // kFlies: when it begins to load links

  bool done() const { return instance == kDone; }
  int64_t place() const { return TaskIndex::Place(instance, copy, rank); }
};

// Copies of an instance that may run at once: what its streams are about to do if
// nothing comes between.
struct Plan {
  int32_t entity = 0;
  uint8_t streams = 0;  // bit mask
  int32_t instance = 0, first_copy = 0;
  int32_t copies = 0;            // may become fewer: what waits for them would come between
  const int64_t* end = nullptr;  // of the tasks of a copy, relative
  int64_t undisturbed = 0;       // until when nothing may come, relative
  int64_t origin = 0, period = 0;
};

// Lower bounds on when things begin that are not known yet: what ends before all
// of them is known. Nothing unknown happens before `now`.
class Horizon {
 public:
  // `alone_ps`: of each group's communication.
  Horizon(const SimInput& input, const SimTrace& trace, const std::vector<int64_t>& alone_ps,
          std::vector<Lane>& lanes);

  // No communication of the entity that is not known yet begins, and none whose
  // end is not known ends, before this, but for what waits for the task that
  // `stream` is at. Looks closely only at what may be before `need`.
  int64_t Of(int32_t entity, int stream, int64_t now, int64_t need);
  // The same of one lane.
  int64_t OfLane(int32_t lane, int stream, int64_t now, int64_t need) {
    return OfLane(lane, stream < 0 ? 0 : 1u << stream, nullptr, now, need, kDepth);
  }
  // The same of a lane, but for what waits for the copies of `plan`, which become
  // fewer if that comes between.
  int64_t BesidePlan(int32_t lane, Plan& plan, int64_t now, int64_t need) {
    return OfLane(lane, 0, &plan, now, need, kDepth);
  }
  // No task `ref` of the plan's entity, in one of its streams and after its copies,
  // begins before this.
  int64_t BeginAfterPlan(const TaskRef& ref, Plan& plan, int64_t now) const {
    return BeginAfterPlan(ref, plan, now, kDepth);
  }
  static constexpr int kNoStream = -1;

 private:
  static constexpr int kDepth = 4;  // of what waits for what

  // The least time from the end of a task to that of a later one of its stream is
  // the difference: kernels, and communications that lie between two neighbours.
  struct BlockWork {
    int64_t whole[kNumStreams] = {};
    std::vector<int64_t> until;  // per task, with it, in its stream
  };
  struct Work {
    int32_t program = 0, price_row = 0;
    std::vector<int64_t> before[kNumStreams];  // per instance; empty: no work
    std::vector<BlockWork> blocks;
  };

  Work WorkOf(const SimGraph::Entity& entity, const std::vector<int64_t>& fastest) const;
  // Of a stream, from its beginning until a task is over, and until it has come
  // so far.
  int64_t WorkUntil(int32_t entity, int stream, const TaskRef& ref) const;
  int64_t WorkBefore(int32_t entity, int stream, const Lane& lane) const;
  int64_t OfLane(int32_t lane, uint32_t streams, Plan* plan, int64_t now, int64_t need, int depth);
  int64_t OfMeeting(int32_t lane, Plan* plan, int64_t now) const;
  int64_t BeginOf(int32_t entity, const TaskRef& ref, uint32_t streams, Plan* plan, int64_t now,
                  int depth) const;
  int64_t BeginAfterPlan(const TaskRef& ref, Plan& plan, int64_t now, int depth) const;
  int64_t EndOf(int32_t entity, const TaskRef& ref, uint32_t streams, Plan* plan, int64_t now,
                int depth) const;
  void Heed(Plan& plan, int stream, const TaskRef& ref) const;

  const SimInput& in_;
  const SimTrace& trace_;
  std::vector<Lane>& lanes_;
  std::vector<Work> work_;
  std::vector<int32_t> work_of_;  // per entity
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_HORIZON_H_
