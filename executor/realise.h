#ifndef PLANCAST_EXECUTOR_REALISE_H_
#define PLANCAST_EXECUTOR_REALISE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "collectives/realise.h"
#include "cost_models/kernel_cost.h"
#include "executor/executor.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// What every distinct kernel takes alone, on every kind of device: the sections of a
// mixed machine, else one.
struct KernelPrices {
  // Devices that kernels take equally long on.
  struct Row {
    double compute_scale = 1;
    int64_t place = 0;  // Skew::PlaceOf
    int kind = 0;
    friend bool operator==(const Row& a, const Row& b) {
      return a.compute_scale == b.compute_scale && a.place == b.place && a.kind == b.kind;
    }
  };

  size_t num_kernels = 0;  // of ExecutionGraph::kernels
  // At nominal speed: kind * num_kernels + kernel.
  std::vector<KernelCost> costs;
  // Per kind, the first of the same type of device: what is not known of a kernel is
  // not known of both. Empty: each is its own.
  std::vector<int> first_alike;
  // Where loads are skewed: seconds alone, like `costs`, per place (Skew::PlaceOf).
  std::vector<std::vector<double>> seconds_at;
  // Picoseconds, rounded up: row * num_kernels + kernel.
  std::vector<int64_t> duration_ps;
  std::vector<Row> rows;  // row 0 is nominal
  // Like `costs`, the time that a kernel takes while its device communicates, against
  // alone: fixed point, 2^-20, at least 1. Empty: SimInput::slowdown_q20 for all.
  std::vector<int64_t> slowdown_q20;

  int64_t Duration(int32_t row, int32_t kernel) const { return AllOf(row)[kernel]; }
  // Of all kernels.
  const int64_t* AllOf(int32_t row) const {
    return duration_ps.data() + static_cast<size_t>(row) * num_kernels;
  }
  const KernelCost& Cost(int kind, int32_t kernel) const {
    return costs[kind * num_kernels + kernel];
  }
  int FirstAlike(int kind) const { return first_alike.empty() ? kind : first_alike[kind]; }
  // The row of such devices, added if new.
  int32_t RowFor(const Row& row);
  // Multiplies what each kernel takes; empty: nothing.
  void Scale(absl::Span<const double> kernel_time);
};

// `gather_skew`: RuntimeParams. Errors: a kernel that no cost model answers for.
absl::StatusOr<KernelPrices> PriceKernels(const ExecutionGraph& graph, const Machine& machine,
                                          const KernelCostModel& costs, double gather_skew = 0);

// A kReshard among the devices of `group`: of its ways the one that takes least alone. `placed`:
// the machine's devices on which the plan's are; null: those of the same numbers.
absl::StatusOr<RealisedCollective> CheapestWay(const ExecutionGraph& graph, const Machine& machine,
                                               const GroupPattern& group, const CommSpec& comm,
                                               const CollectivePolicy& policy,
                                               const std::vector<int64_t>* placed = nullptr);

// Realises communications, each pair of a communication and a group once. Equal
// outcomes of one communication share a number.
class CommPricer {
 public:
  using RealiseFn =
      std::function<absl::StatusOr<RealisedCollective>(const GroupPattern&, const CommSpec&)>;

  CommPricer(const ExecutionGraph& graph, RealiseFn realise)
      : graph_(graph), realise_(std::move(realise)) {}
  // Through Realise, or RealiseByChunks.
  CommPricer(const ExecutionGraph& graph, const Machine& machine, const RuntimeParams& runtime,
             const std::vector<int64_t>* placed = nullptr);

  // Multiplies what each communication takes; empty: nothing. Before any is priced.
  void Scale(std::vector<double> comm_time) { comm_time_ = std::move(comm_time); }

  // Index into realised().
  absl::StatusOr<int32_t> Price(int32_t comm, const GroupPattern& group);
  const std::vector<RealisedCollective>& realised() const { return realised_; }

 private:
  const ExecutionGraph& graph_;
  RealiseFn realise_;
  std::vector<double> comm_time_;
  std::vector<RealisedCollective> realised_;
  std::vector<std::vector<int32_t>> of_comm_;  // numbers of the outcomes of a communication
  absl::flat_hash_map<std::vector<int64_t>, int32_t> known_;
  std::vector<int64_t> key_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_REALISE_H_
