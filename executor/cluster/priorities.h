#ifndef PLANCAST_EXECUTOR_CLUSTER_PRIORITIES_H_
#define PLANCAST_EXECUTOR_CLUSTER_PRIORITIES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "executor/cluster/loop.h"

namespace plancast {

// GPU intensity of CRUX: what a job computes in an iteration over what its communication takes
// alone; very large for a job that sends nothing.
double GpuIntensity(double work, const Loop& loop);

// CRUX's correction of an intensity, against a reference: what the job's communication gets done
// more if it goes before the reference on a link they share, over what the reference's gets done
// less. intensity * factor is above the reference's exactly where going first computes more.
// Both orders are simulated; 1 where the order changes nothing.
double CorrectionFactor(const Loop& job, const Loop& reference);

// Levels 0 to at most levels - 1 for jobs in descending order of priority, `edges` between those
// that compete (first before second), each with what it loses if both get one level: Max-K-Cut on
// random orders that keep every edge's direction, cut optimally (CRUX).
struct CompetingPair {
  int32_t first = 0, second = 0;
  double weight = 0;
};
std::vector<int32_t> CompressedLevels(int32_t jobs, const std::vector<CompetingPair>& edges,
                                      int32_t levels, uint64_t seed);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_PRIORITIES_H_
