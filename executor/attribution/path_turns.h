#ifndef PLANCAST_EXECUTOR_ATTRIBUTION_PATH_TURNS_H_
#define PLANCAST_EXECUTOR_ATTRIBUTION_PATH_TURNS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "executor/simulate/simulate.h"

namespace plancast {

// Finds where a path back through periods that were left out (SimTrace::Jump) goes round: at a
// task that it came to some periods later, too. All times there are those of the period before,
// so it goes on like that, turn by turn.
class PathTurns {
 public:
  PathTurns(const SimInput& in, const SimTrace& trace)
      : in_(in),
        trace_(trace),
        // What a path meets at the beginning of an iteration of its own does not repeat.
        jump_(trace.begins.empty() ? static_cast<int32_t>(trace.jumps.size()) - 1 : -1) {}

  enum class Step : uint8_t {
    kNothing,
    kBegins,  // a turn may begin here
    kEnds,    // one did begin at that task, times() more follow, each instances() earlier
  };
  // The path comes to a task.
  Step At(int32_t entity, const TaskRef& task) {
    return jump_ < 0 ? Step::kNothing : Look(entity, task);
  }
  int32_t times() const { return times_; }
  int32_t instances() const { return instances_; }

 private:
  struct Place {
    int32_t entity = 0;
    TaskRef task;
  };

  Step Look(int32_t entity, const TaskRef& task);
  // How often a turn of so many periods may follow; kNotYet: what it meets does not repeat.
  static constexpr int32_t kNotYet = -1;
  int32_t TimesAhead(int32_t periods) const;
  // Whether an instance is in periods left out on every entity of its program; by how many periods
  // earlier all that it waits for still is.
  bool Repeats(int32_t program, int32_t instance, int32_t* periods) const;

  const SimInput& in_;
  const SimTrace& trace_;
  int32_t jump_;             // the one that the path comes to or is in
  std::vector<Place> turn_;  // since a turn may have begun; empty: not yet
  size_t longest_ = 1;       // after so many places it may begin anew
  int32_t times_ = 0, instances_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_ATTRIBUTION_PATH_TURNS_H_
