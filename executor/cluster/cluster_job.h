#ifndef PLANCAST_EXECUTOR_CLUSTER_CLUSTER_JOB_H_
#define PLANCAST_EXECUTOR_CLUSTER_CLUSTER_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "executor/cluster/loop.h"

namespace plancast {

enum class GpuPlacement : uint8_t {
  kPacked,  // as near to each other as there is room
  kSpread,  // whole hosts, in turn from one leaf after the other
  kGiven,
};
inline constexpr auto kGpuPlacementNames = NamesOf<GpuPlacement>("packed", "spread", "given");

// A job of a cluster, as somebody hands it in.
struct ClusterJob {
  // Begins with its computation and its transfer; either may be nothing.
  struct Phase {
    int64_t compute_ps = 0;
    // The transfer, by what it takes alone, by the bytes that each host sends to the next of its
    // ring, or by both: then its flows never go faster. 0: not said.
    int64_t transfer_ps = 0;
    double bytes = 0;
  };

  std::string name;
  std::string where;  // for errors: `jobs.yaml:12`; or empty
  int64_t gpus = 1;
  GpuPlacement placement = GpuPlacement::kPacked;
  std::vector<int64_t> devices;  // kGiven: of the machine, ascending
  int64_t arrival_ps = 0;
  int64_t iterations = Fluid::kNever;  // or without end
  std::vector<Phase> phases;
  int64_t busy_ps = 0;  // of an iteration, while its GPUs compute
  double work = 0;      // of an iteration, for its intensity: FLOPs, or GPU-seconds of all alike
  int64_t weight = 1;
  int32_t priority = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_CLUSTER_JOB_H_
