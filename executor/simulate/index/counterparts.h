#ifndef PLANCAST_EXECUTOR_SIMULATE_INDEX_COUNTERPARTS_H_
#define PLANCAST_EXECUTOR_SIMULATE_INDEX_COUNTERPARTS_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "executor/comm_uses.h"
#include "executor/simulate/index/task_index.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// The tasks with which members of a communication come to it. Programs that meet without a
// rendezvous do so in the order of their streams: the n-th of one meets the n-th of the others.
class Counterparts {
 public:
  Counterparts(const ExecutionGraph& graph, const CommUses& uses, const TaskIndex& index)
      : graph_(graph), uses_(uses), index_(index) {}

  // The task with which a device of `theirs` comes to what one of `program` comes to with `ref`.
  TaskRef Of(int32_t program, const TaskRef& ref, int32_t theirs);

 private:
  // Of one communication in one stream of a program: how many come before each instance, and in
  // each repeat of it.
  struct Counts {
    std::vector<int64_t> before;
    std::vector<int32_t> each;
  };
  const Counts& CountsOf(int32_t program, int32_t use, StreamKind stream);
  bool Matches(int32_t program, const Block& block, int32_t task, int32_t use,
               StreamKind stream) const;

  const ExecutionGraph& graph_;
  const CommUses& uses_;
  const TaskIndex& index_;
  std::map<std::tuple<int32_t, int32_t, StreamKind>, Counts> counts_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_INDEX_COUNTERPARTS_H_
