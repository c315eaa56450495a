#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "executor/breakdown.h"
#include "executor/comm_uses.h"
#include "executor/critical_path.h"
#include "executor/executor.h"
#include "executor/fold/fold.h"
#include "executor/memory.h"
#include "executor/realise.h"
#include "executor/simulate.h"
#include "executor/task_table.h"

namespace plancast {
namespace {

std::vector<Slice> SlicesOf(const SimInput& in, const SimTrace& trace) {
  std::vector<Slice> slices;
  slices.reserve(trace.end.size());
  for (size_t e = 0; e < in.sim.entities.size(); ++e) {
    const int32_t program = in.sim.entities[e].program;
    const TaskTable& table = in.tables[program];
    for (int s = 0; s < kNumStreams; ++s) {
      for (int32_t task = table.stream_begin[s]; task < table.stream_begin[s + 1]; ++task) {
        const TaskOrigin origin = OriginOf(in.graph, program, table, task);
        const Instance& instance = in.graph.programs[program].instances[origin.instance];
        Slice slice;
        slice.device_class = static_cast<int32_t>(e);
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

int64_t FinishOf(const TaskTable& table, const SimTrace& trace, int64_t begin) {
  int64_t finish = 0;
  for (int s = 0; s < kNumStreams; ++s) {
    if (table.stream_begin[s] == table.stream_begin[s + 1]) continue;
    finish = std::max(finish, trace.end[begin + table.stream_begin[s + 1] - 1]);
  }
  return finish;
}

SimResult Summarise(const SimInput& in, const SimTrace& trace, const RuntimeParams& runtime) {
  SimResult result;
  result.makespan_ps = trace.makespan_ps;
  const ExecutionGraph& graph = in.graph;
  std::vector<int> classes_of(graph.programs.size());
  for (const SimGraph::Entity& entity : in.sim.entities) ++classes_of[entity.program];
  const std::vector<ClassMemory> memory = ReplayMemory(graph, runtime);
  for (size_t e = 0; e < in.sim.entities.size(); ++e) {
    const SimGraph::Entity& entity = in.sim.entities[e];
    DeviceClassResult row;
    row.name = graph.programs[entity.program].name;
    if (classes_of[entity.program] > 1) {
      absl::StrAppend(&row.name, " (as device ", entity.representative, ")");
    }
    row.program = entity.program;
    row.devices = entity.devices;
    row.representative = entity.representative;
    row.breakdown = BreakdownOf(in, trace, static_cast<int32_t>(e));
    row.memory = memory[entity.program];
    row.finish_ps = FinishOf(in.tables[entity.program], trace, trace.begin[e]);
    result.classes.push_back(std::move(row));
    result.counters.tasks += in.tables[entity.program].size() * entity.devices;
  }
  result.counters.device_classes = static_cast<int64_t>(in.sim.entities.size());
  result.counters.blocks = static_cast<int64_t>(graph.blocks.size());
  for (const Program& program : graph.programs) {
    result.counters.instances += static_cast<int64_t>(program.instances.size());
  }
  result.counters.materialised_tasks = static_cast<int64_t>(trace.end.size());
  AttributeCriticalPath(in, trace, result);
  return result;
}

// What grows with tasks. Every thread keeps it from one execution to the next:
// to get tens of megabytes from the system and give them back would take up to a
// quarter of an execution.
struct Columns {
  std::vector<TaskTable> tables;
  SimTrace trace;
};
constexpr int64_t kMostTasksKept = 2'000'000;  // about 100 MB

}  // namespace

absl::StatusOr<SimResult> Execute(const ExecutionGraph& graph, const Machine& machine,
                                  const KernelCostModel& costs, const RuntimeParams& runtime,
                                  const SimulateOptions& options) {
  RETURN_IF_ERROR(graph.Verify());
  ASSIGN_OR_RETURN(const CommUses uses, FindCommUses(graph));
  ASSIGN_OR_RETURN(KernelPrices prices, PriceKernels(graph, machine, costs));
  CommPricer comms(graph, machine, runtime);
  ASSIGN_OR_RETURN(const SimGraph sim, Fold({graph, uses, machine, comms, prices}));
  thread_local Columns columns;
  std::vector<TaskTable>& tables = columns.tables;
  tables.resize(graph.programs.size());
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    tables[p] = UnfoldProgram(graph, uses, static_cast<int32_t>(p), std::move(tables[p]));
  }
  HostParams host;
  host.start_ps = Seconds(runtime.iteration_s).value();
  host.launch_ps = Seconds(runtime.launch_s).value();
  host.sync_ps = Seconds(runtime.host_sync_s).value();
  const int64_t slowdown_q20 =
      std::llround((1.0 + runtime.interference) * static_cast<double>(int64_t{1} << 20));
  const SimInput input{graph,
                       uses,
                       sim,
                       tables,
                       prices,
                       comms.realised(),
                       std::vector<HostParams>(graph.programs.size(), host),
                       slowdown_q20,
                       options.shortcuts};
  ASSIGN_OR_RETURN(columns.trace, Simulate(input, std::move(columns.trace)));
  SimResult result = Summarise(input, columns.trace, runtime);
  if (options.timeline) result.slices = SlicesOf(input, columns.trace);
  if (result.counters.materialised_tasks > kMostTasksKept) columns = Columns();
  return result;
}

}  // namespace plancast
