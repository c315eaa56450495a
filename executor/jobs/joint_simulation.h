#ifndef PLANCAST_EXECUTOR_JOBS_JOINT_SIMULATION_H_
#define PLANCAST_EXECUTOR_JOBS_JOINT_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "executor/attribution/summarise.h"
#include "executor/jobs/merge.h"
#include "executor/jobs/placed_job.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"
#include "executor/simulate/index/task_index.h"
#include "executor/simulate/simulate.h"

namespace plancast {

// Several jobs in one simulation, kept for inspection: merged, folded together,
// run from time 0 on, each host beginning when its job arrives.
class JointSimulation {
 public:
  struct Options {
    bool discrete = false;  // every device by itself
    bool shortcuts = true;
    // Prices of communications, per job; absent: collectives::Realise with the
    // job's `comm_scale`.
    std::function<CommPricer::RealiseFn(const PlacedJob&)> realise;
  };

  // Placements must be checked.
  static absl::StatusOr<std::unique_ptr<JointSimulation>> Run(
      absl::Span<const PlacedJob* const> jobs, const Machine& machine, const KernelCostModel& costs,
      const Options& options);

  const SimInput& input() const { return *input_; }
  const SimTrace& trace() const { return trace_; }
  const MergedJobs& merged() const { return merged_; }
  // Of a job, in the order of `jobs`.
  SummaryRange RangeOf(int job) const;
  // When the last task of a job ends; its arrival and fixed work at least.
  int64_t FinishOf(int job) const;
  // As if time began with the job's arrival and ended with its last task.
  SimResult ResultOf(int job, bool timeline);

 private:
  explicit JointSimulation(absl::Span<const PlacedJob* const> jobs)
      : jobs_(jobs.begin(), jobs.end()) {}

  std::vector<const PlacedJob*> jobs_;
  MergedJobs merged_;
  KernelPrices prices_;
  std::vector<RealisedCollective> realised_;
  SimGraph sim_;
  std::unique_ptr<TaskIndex> index_;
  std::unique_ptr<SimInput> input_;
  SimTrace trace_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_JOBS_JOINT_SIMULATION_H_
