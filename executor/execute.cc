#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/attribution/summarise.h"
#include "executor/comm_uses.h"
#include "executor/contention/interference.h"
#include "executor/executor.h"
#include "executor/fold/fold.h"
#include "executor/realise.h"
#include "executor/runtime.h"
#include "executor/simulate/index/task_index.h"
#include "executor/simulate/simulate.h"

namespace plancast {
namespace {

// What grows with tasks. Every thread keeps it from one execution to the next:
// to get tens of megabytes from the system and give them back would take up to a
// quarter of an execution.
constexpr size_t kMostTimesKept = 10'000'000;  // 80 MB

// A task in a timeline takes some 60 bytes, and 200 in a trace.
constexpr int64_t kMostSlices = 4'000'000;

absl::Status CheckTimeline(const SimInput& in) {
  int64_t slices = 0;
  for (const SimGraph::Entity& entity : in.sim.entities) {
    slices += in.index.program(entity.program).tasks;
  }
  if (slices <= kMostSlices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a timeline of this plan has ", slices, " tasks; there can be ", kMostSlices,
                   ". Take a smaller batch or fewer layers, of which all do the same."));
}

}  // namespace

absl::StatusOr<SimResult> Execute(const ExecutionGraph& graph, const Machine& machine,
                                  const KernelCostModel& costs, const RuntimeParams& runtime,
                                  const SimulateOptions& options) {
  if (!options.verified) {
    RETURN_IF_ERROR(graph.Verify());
  }
  ASSIGN_OR_RETURN(const CommUses uses, FindCommUses(graph));
  ASSIGN_OR_RETURN(KernelPrices prices, PriceKernels(graph, machine, costs, runtime.gather_skew));
  prices.Scale(options.kernel_time);
  CommPricer comms(graph, machine, runtime);
  comms.Scale(options.comm_time);
  ASSIGN_OR_RETURN(const SimGraph sim, Fold({graph, uses, machine, comms, prices}));
  thread_local TaskIndex index;
  ASSIGN_OR_RETURN(
      index, TaskIndex::Create(graph, std::vector<bool>(graph.programs.size(), runtime.cuda_graphs),
                               std::move(index)));
  ASSIGN_OR_RETURN(const std::vector<double> comm_slowdown,
                   PriceBothWays(graph, uses, machine, runtime, comms, prices));
  SimInput input{graph,
                 uses,
                 sim,
                 index,
                 prices,
                 comms.realised(),
                 std::vector<HostParams>(graph.programs.size(), HostParamsOf(runtime)),
                 SlowdownQ20(runtime),
                 options.shortcuts,
                 /*jitter=*/nullptr,
                 runtime.link_sharing};
  input.comm_slowdown_of_kind_q20 = SlowdownsQ20(comm_slowdown);
  if (options.timeline) {
    RETURN_IF_ERROR(CheckTimeline(input));
  }
  thread_local SimTrace trace;
  ASSIGN_OR_RETURN(trace, Simulate(input, std::move(trace)));
  SimResult result;
  result.makespan_ps = trace.makespan_ps;
  const SummaryRange all = WholeRange(input);
  if (options.only_slices) {
    result.slices = SlicesOf(input, trace, all, /*by_start=*/false);
    for (const SimGraph::Entity& entity : sim.entities) {
      result.classes.emplace_back().program = entity.program;
    }
  } else if (!options.wanted || options.wanted(trace.makespan_ps)) {
    result =
        Summarise(input, trace,
                  options.memory != nullptr ? *options.memory : ReplayMemory(graph, runtime), all);
    if (options.timeline) result.slices = SlicesOf(input, trace, all);
  }
  if (trace.times.capacity() > kMostTimesKept) trace = SimTrace();
  return result;
}

}  // namespace plancast
