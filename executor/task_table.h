#ifndef PLANCAST_EXECUTOR_TASK_TABLE_H_
#define PLANCAST_EXECUTOR_TASK_TABLE_H_

#include <cstdint>
#include <vector>

#include "executor/comm_uses.h"
#include "graph/execution_graph.h"

namespace plancast {

// The tasks of one program, unfolded over its instances and their layers, for
// every device that runs it. Struct of arrays; about 24 bytes a task.
//
// A task's number counts stream by stream, in issue order within a stream, so
// that a stream is a range of numbers and completes in ascending order. That a
// task waits for its predecessor in the stream goes without saying; `deps` names
// only what else it waits for, at most one task of each other stream, and none
// that the stream has waited for before.
struct TaskTable {
  static constexpr uint8_t kIsComm = 1;
  static constexpr uint8_t kMeets = 2;  // a communication at a rendezvous

  int32_t stream_begin[kNumStreams + 1] = {};
  std::vector<int32_t> spec;  // kernel, communication use, or rendezvous
  std::vector<uint8_t> flags;
  std::vector<Purpose> purpose;
  std::vector<int32_t> dep_begin;  // CSR, size tasks + 1
  std::vector<int32_t> deps;
  std::vector<int32_t> issue;  // position in issue order
  // Launches by the host up to this task and with it, in issue order.
  std::vector<int32_t> launches;
  // The number of host-synchronising tasks issued before; empty if there are none.
  std::vector<int32_t> syncs_before;
  std::vector<int32_t> sync_tasks;

  std::vector<int32_t> issue_begin;  // per instance, and the end

  int32_t size() const { return stream_begin[kNumStreams]; }
  int StreamOf(int32_t task) const {
    int stream = 0;
    while (task >= stream_begin[stream + 1]) ++stream;
    return stream;
  }
};

// `memory`: a table that is done with, whose columns are used again.
TaskTable UnfoldProgram(const ExecutionGraph& graph, const CommUses& uses, int32_t program,
                        TaskTable memory = {});

// Where a task of a table comes from.
struct TaskOrigin {
  int32_t instance = 0, layer = 0, block_task = 0;
};
TaskOrigin OriginOf(const ExecutionGraph& graph, int32_t program, const TaskTable& table,
                    int32_t task);

// The task with which a program comes to a rendezvous.
int32_t TaskAtRendezvous(const ExecutionGraph& graph, const std::vector<TaskTable>& tables,
                         int32_t rendezvous, int32_t program);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_TASK_TABLE_H_
