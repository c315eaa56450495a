#ifndef PLANCAST_INTEROP_CHAKRA_PLAN_TRACES_H_
#define PLANCAST_INTEROP_CHAKRA_PLAN_TRACES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/execution/execution_graph.h"
#include "interop/chakra/et_file.h"
#include "interop/chakra/verify_traces.h"

namespace plancast {

// An execution graph as Chakra traces, rank by rank, by the rules that ASTRA-sim
// needs: ids in issue order, dependencies inside the file, the same order of
// collectives on all members of a group, equal sizes and tags of sends and receives.
// Kernels take whole microseconds, whose rounding does not add up: the k-th kernel
// ends within one of the sum. Streams become dependencies on the task before.
// A message of a group (Permute) is a send and a receive, a reshard one for each pair that has
// something for each other (`send_receive`). Idle devices have empty traces.
class PlanTraces {
 public:
  // `kernel_seconds` like graph.kernels. The graph must be verified and outlive
  // this. Errors: more ranks or tasks than the limits.
  static absl::StatusOr<PlanTraces> Create(const ExecutionGraph& graph,
                                           std::vector<double> kernel_seconds);

  int64_t ranks() const { return graph_->mesh.num_devices(); }
  // The trace of a rank. Groups that it names are added to groups().
  EtFile TraceOf(int64_t rank);
  // Of the traces asked for so far.
  const CommGroups& groups() const { return groups_; }

  static constexpr int64_t kMostRanks = 4096, kMostTasks = 1'000'000;

 private:
  PlanTraces(const ExecutionGraph& graph, std::vector<double> kernel_seconds)
      : graph_(&graph), seconds_(std::move(kernel_seconds)) {}

  int64_t GroupId(std::vector<int64_t> members);

  const ExecutionGraph* graph_;
  std::vector<double> seconds_;
  CommGroups groups_;
  std::map<std::vector<int64_t>, int64_t> id_of_;
  friend class RankWriter;
};

// The microbenchmark of ASTRA-sim's examples: one collective of `bytes` on each of
// `ranks`, `all_reduce_8npus_1MB`.
absl::StatusOr<EtFile> MicrobenchmarkTrace(chakra::CollectiveCommType type, int64_t ranks,
                                           int64_t bytes);

// {"1": [0, 2], ...}, by number.
std::string WriteCommGroups(const CommGroups& groups);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHAKRA_PLAN_TRACES_H_
