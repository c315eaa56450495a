#ifndef PLANCAST_EXECUTOR_SIMULATE_INDEX_TASK_INDEX_H_
#define PLANCAST_EXECUTOR_SIMULATE_INDEX_TASK_INDEX_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/simulate/index/block_index.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// A task of a program: of which instance, in which of its layers (of the
// Instance::layer_count that run one after another, each Block::layers of the model).
struct TaskRef {
  int32_t instance = -1, layer = 0, task = 0;

  friend bool operator==(const TaskRef& a, const TaskRef& b) {
    return a.instance == b.instance && a.layer == b.layer && a.task == b.task;
  }
};

// Where the tasks of an execution graph are, without unfolding its programs. The
// graph must outlive it.
class TaskIndex {
 public:
  using Refs = absl::InlinedVector<TaskRef, 8>;

  // Errors: more instances, layers or tasks than a Place can number.
  // `cuda_graphs`: per program, whether its blocks that meet no other program and
  // for which the host does not wait are launched by CUDA graphs; empty: none are.
  static absl::StatusOr<TaskIndex> Create(const ExecutionGraph& graph,
                                          const std::vector<bool>& cuda_graphs = {});
  // `memory`: an index that is done with, whose columns are used again.
  static absl::StatusOr<TaskIndex> Create(const ExecutionGraph& graph,
                                          const std::vector<bool>& cuda_graphs, TaskIndex memory);

  // Of nothing.
  TaskIndex() = default;

  const BlockIndex& block(int32_t block) const { return blocks_[block]; }
  const ProgramIndex& program(int32_t program) const { return programs_[program]; }
  const Instance& InstanceOf(int32_t program, int32_t instance) const {
    return programs_[program].instances[instance];
  }
  const BlockIndex& BlockAt(int32_t program, int32_t instance) const {
    return blocks_[InstanceOf(program, instance).block];
  }

  // Position in the issue order of the program.
  int64_t IssueOf(int32_t program, const TaskRef& ref) const {
    return programs_[program].issue_begin[ref.instance] +
           int64_t{ref.layer} * BlockAt(program, ref.instance).size + ref.task;
  }
  int StreamOf(int32_t program, const TaskRef& ref) const {
    return static_cast<int>(BlockAt(program, ref.instance).stream[ref.task]);
  }
  // A number that ascends along a stream.
  int64_t PlaceOf(int32_t program, const TaskRef& ref) const {
    return Place(ref.instance, ref.layer, BlockAt(program, ref.instance).rank[ref.task]);
  }
  static int64_t Place(int32_t instance, int32_t layer, int32_t rank) {
    return int64_t{instance} << 38 | int64_t{layer} << 24 | rank;
  }

  // Calls `look(TaskRef)` for the tasks that complete an in-port of a layer, or what gates its
  // instance for port == num_in_ports, until it returns false. Whether it never did.
  template <typename Look>
  bool LookAtPort(int32_t program, int32_t instance, int32_t layer, int32_t port,
                  const Look& look) const;
  // The same for all that completes any in-port of a layer or gates its instance.
  template <typename Look>
  bool LookAtPorts(int32_t program, int32_t instance, int32_t layer, const Look& look) const;
  // The same for all that the first task of a stream in a layer waits for outside of it.
  template <typename Look>
  bool LookAtEntry(int32_t program, int32_t instance, int32_t layer, int32_t task,
                   const Look& look) const;
  // The same for all that a task waits for beyond its predecessor; some are of its own stream, or
  // of one that another of them is of.
  template <typename Look>
  bool LookAtWaits(int32_t program, const TaskRef& ref, const Look& look) const;
  // They are appended to `to`.
  void TasksOfPort(int32_t program, int32_t instance, int32_t layer, int32_t port, Refs& to) const {
    LookAtPort(program, instance, layer, port, [&to](const TaskRef& ref) {
      to.push_back(ref);
      return true;
    });
  }
  // The task before in the stream; instance -1: none.
  TaskRef Predecessor(int32_t program, const TaskRef& ref) const;
  // All that a task waits for, at most one task of each other stream, ascending by
  // stream; not its predecessor in its own.
  void WaitsOf(int32_t program, const TaskRef& ref, Refs& to) const;
  // The task that the host waited for before it launches this; instance -1: none.
  TaskRef SyncBefore(int32_t program, const TaskRef& ref) const;
  // Launches up to this task, without its own, in issue order.
  int64_t LaunchesBefore(int32_t program, const TaskRef& ref) const {
    const BlockIndex& block = BlockAt(program, ref.instance);
    return programs_[program].launches_before[ref.instance] +
           int64_t{block.launches.back()} * ref.layer + block.launches[ref.task];
  }
  // Of a task's own, with which it can start.
  int32_t FirstLaunchOf(int32_t program, const TaskRef& ref) const {
    const BlockIndex& block = BlockAt(program, ref.instance);
    return block.first_launch[ref.task] - block.launches[ref.task];
  }
  int32_t LaunchesOf(int32_t program, const TaskRef& ref) const {
    const BlockIndex& block = BlockAt(program, ref.instance);
    return block.launches[ref.task + 1] - block.launches[ref.task];
  }
  // The task with which a program comes to a rendezvous.
  TaskRef AtRendezvous(int32_t rendezvous, int32_t program) const;

 private:
  // The last instance before that has tasks in a stream; -1: none.
  int32_t InstanceBefore(int32_t program, int stream, int32_t instance) const;
  template <typename Look>
  bool LookAtJoin(int32_t program, const Join& join, const Look& look) const;
  template <typename Look>
  bool LookAtOut(int32_t program, int32_t instance, int32_t layer, int32_t port,
                 const Look& look) const;

  const ExecutionGraph* graph_ = nullptr;
  std::vector<BlockIndex> blocks_;
  std::vector<ProgramIndex> programs_;
};

template <typename Look>
bool TaskIndex::LookAtPort(int32_t program, int32_t instance, int32_t layer, int32_t port,
                           const Look& look) const {
  const ProgramIndex& own = programs_[program];
  const Instance& at = own.instances[instance];
  const bool gate = port == blocks_[at.block].num_in_ports;
  if (layer > 0) return gate || LookAtOut(program, instance, layer - 1, port, look);
  const int32_t to_port = gate ? -1 : port;
  for (int32_t j = at.join_begin; j < at.join_end; ++j) {
    if (own.joins[j].to_port == to_port && !LookAtJoin(program, own.joins[j], look)) return false;
  }
  return true;
}

template <typename Look>
bool TaskIndex::LookAtPorts(int32_t program, int32_t instance, int32_t layer,
                            const Look& look) const {
  const ProgramIndex& own = programs_[program];
  const Instance& at = own.instances[instance];
  if (layer > 0) {
    for (int32_t port = 0; port < blocks_[at.block].num_in_ports; ++port) {
      if (!LookAtOut(program, instance, layer - 1, port, look)) return false;
    }
    return true;
  }
  for (int32_t j = at.join_begin; j < at.join_end; ++j) {
    if (!LookAtJoin(program, own.joins[j], look)) return false;
  }
  return true;
}

template <typename Look>
bool TaskIndex::LookAtEntry(int32_t program, int32_t instance, int32_t layer, int32_t task,
                            const Look& look) const {
  const ProgramIndex& own = programs_[program];
  const Instance& at = own.instances[instance];
  const BlockIndex& block = blocks_[at.block];
  const int32_t* const begin = block.ports.data() + block.port_begin[task];
  const int32_t* const end = block.ports.data() + block.port_begin[task + 1];
  if (layer > 0) {
    for (const int32_t* port = begin; port < end; ++port) {
      if (!LookAtOut(program, instance, layer - 1, *port, look)) return false;
    }
    return true;
  }
  for (int32_t j = at.join_begin; j < at.join_end; ++j) {
    const Join& join = own.joins[j];
    const bool counts = join.to_port < 0 || std::find(begin, end, join.to_port) != end;
    if (counts && !LookAtJoin(program, join, look)) return false;
  }
  return true;
}

template <typename Look>
bool TaskIndex::LookAtJoin(int32_t program, const Join& join, const Look& look) const {
  const Instance& from = InstanceOf(program, join.from);
  if (join.from_port >= 0) {
    return LookAtOut(program, join.from, from.layer_count - 1, join.from_port, look);
  }
  const BlockIndex& block = blocks_[from.block];
  for (uint32_t rest = block.streams; rest != 0; rest &= rest - 1) {
    if (!look({join.from, from.layer_count - 1, block.Last(__builtin_ctz(rest))})) return false;
  }
  return true;
}

template <typename Look>
bool TaskIndex::LookAtOut(int32_t program, int32_t instance, int32_t layer, int32_t port,
                          const Look& look) const {
  const absl::Span<const int32_t> out = BlockAt(program, instance).out_ports;
  if (port >= static_cast<int32_t>(out.size())) return true;
  return out[port] >= 0 ? look({instance, layer, out[port]})
                        : LookAtPort(program, instance, layer, ~out[port], look);
}

template <typename Look>
bool TaskIndex::LookAtWaits(int32_t program, const TaskRef& ref, const Look& look) const {
  const BlockIndex& block = BlockAt(program, ref.instance);
  for (int32_t d = block.dep_begin[ref.task]; d < block.dep_begin[ref.task + 1]; ++d) {
    if (!look({ref.instance, ref.layer, block.deps[d]})) return false;
  }
  if (block.rank[ref.task] == 0) {
    return LookAtEntry(program, ref.instance, ref.layer, ref.task, look);
  }
  for (int32_t p = block.port_begin[ref.task]; p < block.port_begin[ref.task + 1]; ++p) {
    if (!LookAtPort(program, ref.instance, ref.layer, block.ports[p], look)) return false;
  }
  return true;
}

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_INDEX_TASK_INDEX_H_
