#include <cmath>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/units.h"
#include "executor/comm_uses.h"
#include "executor/executor.h"
#include "executor/fold/fold.h"
#include "executor/interference.h"
#include "executor/memory.h"
#include "executor/realise.h"
#include "executor/simulate.h"
#include "executor/summarise.h"
#include "executor/task_table.h"

namespace plancast {
namespace {

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
  if (!runtime.interference.has_value()) {
    ASSIGN_OR_RETURN(const CollectiveFootprint beside, MeanFootprint(graph, uses, machine, comms));
    PriceInterference(machine.device(), beside, prices);
  }
  const int64_t slowdown_q20 = std::llround((1.0 + runtime.interference.value_or(0)) *
                                            static_cast<double>(int64_t{1} << 20));
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
  const SummaryRange all = WholeRange(input);
  SimResult result = Summarise(input, columns.trace, ReplayMemory(graph, runtime), all);
  if (options.timeline) result.slices = SlicesOf(input, columns.trace, all);
  if (result.counters.materialised_tasks > kMostTasksKept) columns = Columns();
  return result;
}

}  // namespace plancast
