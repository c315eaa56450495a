#include "executor/summarise.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/breakdown.h"
#include "executor/critical_path.h"
#include "executor/task_table.h"

namespace plancast {
namespace {

int64_t TasksIn(const SimInput& in, const SummaryRange& range) {
  int64_t tasks = 0;
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    tasks += in.tables[in.sim.entities[e].program].size();
  }
  return tasks;
}

int64_t FinishOf(const TaskTable& table, const SimTrace& trace, int64_t begin) {
  int64_t finish = 0;
  for (int s = 0; s < kNumStreams; ++s) {
    if (table.stream_begin[s] == table.stream_begin[s + 1]) continue;
    finish = std::max(finish, trace.end[begin + table.stream_begin[s + 1] - 1]);
  }
  return finish;
}

}  // namespace

SummaryRange WholeRange(const SimInput& in) {
  return {0, static_cast<int32_t>(in.graph.programs.size()), 0,
          static_cast<int32_t>(in.sim.entities.size())};
}

std::vector<Slice> SlicesOf(const SimInput& in, const SimTrace& trace, const SummaryRange& range) {
  std::vector<Slice> slices;
  slices.reserve(TasksIn(in, range));
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    const int32_t program = in.sim.entities[e].program;
    const TaskTable& table = in.tables[program];
    for (int s = 0; s < kNumStreams; ++s) {
      for (int32_t task = table.stream_begin[s]; task < table.stream_begin[s + 1]; ++task) {
        const TaskOrigin origin = OriginOf(in.graph, program, table, task);
        const Instance& instance = in.graph.programs[program].instances[origin.instance];
        Slice slice;
        slice.device_class = e - range.entity_begin;
        slice.stream = static_cast<StreamKind>(s);
        slice.purpose = table.purpose[task];
        slice.block = instance.block;
        slice.task = origin.block_task;
        slice.layer = origin.layer;
        slice.micro_batch = instance.micro_batch;
        slice.chunk = instance.chunk;
        slice.start_ps = trace.start[trace.begin[e] + task];
        slice.end_ps = trace.end[trace.begin[e] + task];
        slices.push_back(slice);
      }
    }
  }
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::tie(a.start_ps, a.device_class) < std::tie(b.start_ps, b.device_class);
  });
  return slices;
}

SimResult Summarise(const SimInput& in, const SimTrace& trace,
                    const std::vector<ClassMemory>& memory, const SummaryRange& range) {
  SimResult result;
  result.makespan_ps = trace.makespan_ps;
  const ExecutionGraph& graph = in.graph;
  std::vector<int> classes_of(graph.programs.size());
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    ++classes_of[in.sim.entities[e].program];
  }
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    const SimGraph::Entity& entity = in.sim.entities[e];
    DeviceClassResult row;
    row.name = graph.programs[entity.program].name;
    if (classes_of[entity.program] > 1) {
      absl::StrAppend(&row.name, " (as device ", entity.representative, ")");
    }
    row.program = entity.program - range.program_begin;
    row.devices = entity.devices;
    row.representative = entity.representative;
    row.breakdown = BreakdownOf(in, trace, e);
    row.memory = memory[row.program];
    row.finish_ps = FinishOf(in.tables[entity.program], trace, trace.begin[e]);
    result.classes.push_back(std::move(row));
    result.counters.tasks += in.tables[entity.program].size() * entity.devices;
  }
  result.counters.device_classes = range.entity_end - range.entity_begin;
  result.counters.blocks = static_cast<int64_t>(graph.blocks.size());
  for (int32_t p = range.program_begin; p < range.program_end; ++p) {
    result.counters.instances += static_cast<int64_t>(graph.programs[p].instances.size());
  }
  result.counters.materialised_tasks = TasksIn(in, range);
  AttributeCriticalPath(in, trace, result, range.entity_begin, range.entity_end);
  return result;
}

}  // namespace plancast
