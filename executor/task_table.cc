#include "executor/task_table.h"

#include <algorithm>
#include <utility>

namespace plancast {
namespace {

struct NumberedTask {
  int32_t task = 0;
  int32_t stream = 0;
};

// What unfolding needs of a block, once for all its copies.
struct BlockShape {
  int32_t count[kNumStreams] = {};
  std::vector<int32_t> rank;  // position within the task's stream
};

class Unfolder {
 public:
  Unfolder(const ExecutionGraph& graph, const CommUses& uses, int32_t program, TaskTable memory)
      : graph_(graph),
        uses_(uses),
        program_index_(program),
        program_(graph.programs[program]),
        table_(std::move(memory)) {}

  TaskTable Unfold() && {
    Prepare();
    for (const Instance& instance : program_.instances) {
      const Block& block = graph_.blocks[instance.block];
      const BlockShape& shape = shapes_[instance.block];
      table_.issue_begin.push_back(issued_);
      GatherInPorts(instance, block);
      for (int32_t copy = 0; copy < instance.layer_count; ++copy) {
        UnfoldCopy(instance, block, shape);
        if (copy == 0) gate_.clear();
        GatherOutPorts(block, shape);
        for (int s = 0; s < kNumStreams; ++s) base_[s] += shape.count[s];
        in_begin_.swap(out_begin_);
        in_.swap(out_);
      }
      KeepOutPorts(shape);
    }
    table_.issue_begin.push_back(issued_);
    CollectDependencies();
    return std::move(table_);
  }

 private:
  void Prepare() {
    shapes_.resize(graph_.blocks.size());
    int64_t count[kNumStreams] = {};
    int64_t waits = 0;
    for (const Instance& instance : program_.instances) {
      BlockShape& shape = shapes_[instance.block];
      const Block& block = graph_.blocks[instance.block];
      if (shape.rank.empty()) {
        shape.rank.resize(block.size());
        for (int32_t t = 0; t < block.size(); ++t) {
          shape.rank[t] = shape.count[static_cast<int>(block.stream[t])]++;
        }
      }
      for (int s = 0; s < kNumStreams; ++s) {
        count[s] += int64_t{shape.count[s]} * instance.layer_count;
      }
      waits += static_cast<int64_t>(block.deps.size()) * instance.layer_count;
    }
    waits_.reserve(waits);
    for (int s = 0; s < kNumStreams; ++s) {
      base_[s] = table_.stream_begin[s];
      table_.stream_begin[s + 1] = table_.stream_begin[s] + static_cast<int32_t>(count[s]);
      std::fill_n(known_[s], kNumStreams, -1);
    }
    const int32_t tasks = table_.size();
    table_.spec.resize(tasks);
    table_.flags.assign(tasks, 0);
    table_.purpose.resize(tasks);
    table_.issue.resize(tasks);
    table_.launches.resize(tasks);
    table_.syncs_before.clear();
    table_.sync_tasks.clear();
    table_.issue_begin.clear();
    table_.issue_begin.reserve(program_.instances.size() + 1);
    dep_count_.resize(tasks + 1);
    bool syncs = false;
    for (const Instance& instance : program_.instances) {
      for (uint8_t flags : graph_.blocks[instance.block].flags) {
        syncs = syncs || (flags & Block::kHostSync) != 0;
      }
      if (syncs) break;
    }
    if (syncs) table_.syncs_before.resize(tasks);
  }

  // What the in-ports of the first copy wait for, and what gates all its tasks.
  void GatherInPorts(const Instance& instance, const Block& block) {
    in_.clear();
    in_begin_.assign(block.num_in_ports + 1, 0);
    gate_.clear();
    for (int32_t port = -1; port < block.num_in_ports; ++port) {
      std::vector<NumberedTask>& to = port < 0 ? gate_ : in_;
      if (port >= 0) in_begin_[port] = static_cast<int32_t>(in_.size());
      for (int32_t j = instance.join_begin; j < instance.join_end; ++j) {
        const Join& join = program_.joins[j];
        if (join.to_port == port) AppendOut(join.from, join.from_port, to);
      }
    }
    in_begin_[block.num_in_ports] = static_cast<int32_t>(in_.size());
  }

  void AppendOut(int32_t instance, int32_t port, std::vector<NumberedTask>& to) const {
    const Done& done = done_[instance];
    if (port < 0) {
      for (int s = 0; s < kNumStreams; ++s) {
        if (done.last[s] >= 0) to.push_back({done.last[s], s});
      }
      return;
    }
    for (int32_t i = ports_[done.ports + port]; i < ports_[done.ports + port + 1]; ++i) {
      to.push_back(port_tasks_[i]);
    }
  }

  void UnfoldCopy(const Instance& instance, const Block& block, const BlockShape& shape) {
    for (int32_t t = 0; t < block.size(); ++t) {
      const int stream = static_cast<int>(block.stream[t]);
      const int32_t task = base_[stream] + shape.rank[t];
      table_.purpose[task] = block.purpose[t];
      table_.issue[task] = issued_++;
      if (block.kind[t] == TaskKind::kKernel) {
        table_.spec[task] = block.spec[t];
        launched_ += graph_.kernels[block.spec[t]].launches;
      } else if (t == block.rendezvous_task) {
        table_.spec[task] = instance.rendezvous;
        table_.flags[task] = TaskTable::kIsComm | TaskTable::kMeets;
        ++launched_;
      } else {
        table_.spec[task] = uses_.OfComm(program_index_, block.spec[t]);
        table_.flags[task] = TaskTable::kIsComm;
        ++launched_;
      }
      table_.launches[task] = launched_;
      if (!table_.syncs_before.empty()) {
        table_.syncs_before[task] = static_cast<int32_t>(table_.sync_tasks.size());
        if ((block.flags[t] & Block::kHostSync) != 0) table_.sync_tasks.push_back(task);
      }
      Wait(block, shape, t, stream, task);
    }
  }

  // Records what `task` waits for beyond what its stream knows to be over.
  void Wait(const Block& block, const BlockShape& shape, int32_t t, int stream, int32_t task) {
    int32_t* known = known_[stream];
    int32_t latest[kNumStreams];
    uint32_t streams = 0;
    const auto wait_for = [&](int32_t other_task, int other) {
      if (other == stream || other_task <= known[other]) return;
      known[other] = other_task;
      latest[other] = other_task;
      streams |= 1u << other;
    };
    for (int32_t d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
      const int32_t dep = block.deps[d];
      if (dep >= 0) {
        const int other = static_cast<int>(block.stream[dep]);
        wait_for(base_[other] + shape.rank[dep], other);
      } else {
        for (int32_t i = in_begin_[~dep]; i < in_begin_[~dep + 1]; ++i) {
          wait_for(in_[i].task, in_[i].stream);
        }
      }
    }
    if (!gate_.empty() && shape.rank[t] == 0) {
      for (const NumberedTask& gate : gate_) wait_for(gate.task, gate.stream);
    }
    for (int s = 0; streams != 0; ++s, streams >>= 1) {
      if ((streams & 1) == 0) continue;
      waits_.push_back({task, latest[s]});
      ++dep_count_[task];
    }
  }

  void GatherOutPorts(const Block& block, const BlockShape& shape) {
    out_.clear();
    out_begin_.clear();
    for (int32_t port : block.out_ports) {
      out_begin_.push_back(static_cast<int32_t>(out_.size()));
      if (port >= 0) {
        const int stream = static_cast<int>(block.stream[port]);
        out_.push_back({base_[stream] + shape.rank[port], stream});
      } else {
        for (int32_t i = in_begin_[~port]; i < in_begin_[~port + 1]; ++i) out_.push_back(in_[i]);
      }
    }
    out_begin_.push_back(static_cast<int32_t>(out_.size()));
    // A block with fewer out-ports than in-ports leaves the others open.
    while (static_cast<int32_t>(out_begin_.size()) < block.num_in_ports + 1) {
      out_begin_.push_back(out_begin_.back());
    }
  }

  void KeepOutPorts(const BlockShape& shape) {
    Done done;
    done.ports = static_cast<int32_t>(ports_.size());
    for (int s = 0; s < kNumStreams; ++s) done.last[s] = shape.count[s] > 0 ? base_[s] - 1 : -1;
    for (int32_t begin : in_begin_) {
      ports_.push_back(static_cast<int32_t>(port_tasks_.size()) + begin);
    }
    port_tasks_.insert(port_tasks_.end(), in_.begin(), in_.end());
    done_.push_back(done);
  }

  // The waits were found in issue order; the table wants them by task.
  void CollectDependencies() {
    table_.dep_begin.resize(table_.size() + 1);
    int32_t sum = 0;
    for (int32_t t = 0; t < table_.size(); ++t) {
      table_.dep_begin[t] = sum;
      sum += dep_count_[t];
      dep_count_[t] = table_.dep_begin[t];
    }
    table_.dep_begin[table_.size()] = sum;
    table_.deps.resize(sum);
    for (const auto& [task, dep] : waits_) table_.deps[dep_count_[task]++] = dep;
  }

  struct Done {
    int32_t ports = 0;               // into ports_
    int32_t last[kNumStreams] = {};  // last task in each stream, or -1
  };

  const ExecutionGraph& graph_;
  const CommUses& uses_;
  const int32_t program_index_;
  const Program& program_;
  TaskTable table_;
  std::vector<BlockShape> shapes_;
  int32_t base_[kNumStreams] = {};  // first number of the current copy in each stream
  int32_t known_[kNumStreams][kNumStreams];
  int32_t issued_ = 0, launched_ = 0;
  std::vector<NumberedTask> in_, out_, gate_, port_tasks_;
  std::vector<int32_t> in_begin_, out_begin_, ports_, dep_count_;
  std::vector<Done> done_;
  std::vector<std::pair<int32_t, int32_t>> waits_;
};

}  // namespace

TaskTable UnfoldProgram(const ExecutionGraph& graph, const CommUses& uses, int32_t program,
                        TaskTable memory) {
  return Unfolder(graph, uses, program, std::move(memory)).Unfold();
}

TaskOrigin OriginOf(const ExecutionGraph& graph, int32_t program, const TaskTable& table,
                    int32_t task) {
  const int32_t issue = table.issue[task];
  const auto after = std::upper_bound(table.issue_begin.begin(), table.issue_begin.end(), issue);
  TaskOrigin origin;
  origin.instance = static_cast<int32_t>(after - table.issue_begin.begin()) - 1;
  const Instance& instance = graph.programs[program].instances[origin.instance];
  const int32_t within = issue - table.issue_begin[origin.instance];
  const int32_t tasks = graph.blocks[instance.block].size();
  origin.layer = instance.layer_begin + within / tasks;
  origin.block_task = within % tasks;
  return origin;
}

int32_t TaskAtRendezvous(const ExecutionGraph& graph, const std::vector<TaskTable>& tables,
                         int32_t rendezvous, int32_t program) {
  for (const Rendezvous::Party& party : graph.rendezvous[rendezvous].parties) {
    if (party.program != program) continue;
    const TaskTable& table = tables[program];
    const Block& block = graph.blocks[graph.programs[program].instances[party.instance].block];
    const int stream = static_cast<int>(block.stream[block.rendezvous_task]);
    const auto begin = table.issue.begin() + table.stream_begin[stream];
    const auto end = table.issue.begin() + table.stream_begin[stream + 1];
    const int32_t issue = table.issue_begin[party.instance] + block.rendezvous_task;
    return static_cast<int32_t>(std::lower_bound(begin, end, issue) - table.issue.begin());
  }
  return -1;
}

}  // namespace plancast
