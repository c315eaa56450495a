#ifndef PLANCAST_EXECUTOR_CLUSTER_ROUTES_H_
#define PLANCAST_EXECUTOR_CLUSTER_ROUTES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "executor/cluster/cluster_job.h"
#include "executor/cluster/fabric.h"
#include "executor/cluster/loop.h"

namespace plancast {

// A job on its GPUs, as links see it.
struct PlacedLoop {
  std::vector<FabricFlow> flows;
  int64_t per_hop = 0;
  Loop loop;
  double flow_bytes = 0;   // of an iteration, one flow
  double bytes_per_s = 0;  // of a flow, on average over an iteration alone
};

// Paths for the flows of jobs, and how loaded links are on average.
class Routes {
 public:
  Routes(const Fabric& fabric, uint64_t seed)
      : fabric_(fabric), seed_(seed), loads_(fabric.capacities().size(), 0.0) {}

  // The flows of a job and its phases; its uses are empty until it has paths.
  PlacedLoop Place(const ClusterJob& job, absl::Span<const int64_t> gpus, int64_t weight) const;

  // By a hash of job and flow, or where least is going on. Sets `uses` and `alone_level`, and the
  // work of the phases if it is not known yet.
  void Choose(const ClusterJob& job, int32_t number, bool by_load, PlacedLoop* placed);
  // Counts a job's loads in or out.
  void Count(const PlacedLoop& placed, int by);
  // Bytes a second of every link: what has been counted, to the last digit.
  std::vector<double>& loads() { return loads_; }
  const std::vector<double>& loads() const { return loads_; }

 private:
  void SetUses(std::vector<int32_t> links, PlacedLoop* placed) const;
  void SetWork(const ClusterJob& job, PlacedLoop* placed) const;

  const Fabric& fabric_;
  const uint64_t seed_;
  std::vector<double> loads_;  // bytes a second
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_ROUTES_H_
