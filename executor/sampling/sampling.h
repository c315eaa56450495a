#ifndef PLANCAST_EXECUTOR_SAMPLING_SAMPLING_H_
#define PLANCAST_EXECUTOR_SAMPLING_SAMPLING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "executor/executor.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// What varies from iteration to iteration.
struct Randomness {
  // Every kernel on every device and every communication takes exp(N) times what
  // it is priced at, independently: lognormal, mean one, this sigma of the
  // logarithm. 0: none.
  double jitter = 0;
  // Every device runs, for an iteration, at `straggler_speed` of its speed with
  // this probability, independently. 0: none.
  double straggler_probability = 0;
  double straggler_speed = 1;
  int64_t samples = 0;  // iterations; 0: nothing is drawn
  uint64_t seed = 0;
  int threads = 1;

  // Errors: values out of range.
  absl::Status Check() const;
};

// Iteration times over samples.
struct Distribution {
  Randomness drawn;                 // as asked for, with its seed
  std::vector<int64_t> samples_ps;  // in the order of their numbers

  double mean_s() const;
  double stddev_s() const;  // of the sample, n - 1; 0 for one
  // Seconds; linear between neighbours. 0 <= q <= 1.
  double quantile_s(double q) const;
};

// Simulates iterations with numbers drawn from (seed, sample, device, task): the
// same seed gives the same digits, on any number of threads, and sigma 0 the
// deterministic time.
//
// Stragglers alone fold: each sample has few speeds. Jitter makes every device
// different, so each is simulated by itself, which costs devices times tasks for
// each sample; plans with more than kMostJitteredTasks are an error.
inline constexpr int64_t kMostJitteredTasks = 20'000'000;
absl::StatusOr<Distribution> ExecuteSamples(const ExecutionGraph& graph, const Machine& machine,
                                            const KernelCostModel& costs,
                                            const RuntimeParams& runtime,
                                            const Randomness& randomness,
                                            const SimulateOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SAMPLING_SAMPLING_H_
