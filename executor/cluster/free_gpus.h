#ifndef PLANCAST_EXECUTOR_CLUSTER_FREE_GPUS_H_
#define PLANCAST_EXECUTOR_CLUSTER_FREE_GPUS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "executor/cluster/cluster_job.h"
#include "executor/cluster/fabric.h"

namespace plancast {

// Which GPUs of a fabric run which job.
class FreeGpus {
 public:
  static constexpr int32_t kNobody = -1;

  explicit FreeGpus(const Fabric& fabric);

  int64_t free() const { return free_; }
  // Who has a GPU.
  int32_t UserOf(int64_t gpu) const { return user_of_[gpu]; }
  // GPUs for a job, ascending; empty if too few are free. Not kGiven.
  //
  // kPacked: in the fullest host that has room, else in the fullest leaf, pod, ... that has,
  // emptiest hosts first. kSpread: on the emptiest host, or hosts in turn from every leaf.
  std::vector<int64_t> Find(int64_t gpus, GpuPlacement how) const;
  void Take(absl::Span<const int64_t> gpus, int32_t user);
  void Release(absl::Span<const int64_t> gpus);

 private:
  std::vector<int64_t> Packed(int64_t gpus) const;
  std::vector<int64_t> Spread(int64_t gpus) const;
  // Of these hosts, one after the other.
  std::vector<int64_t> From(const std::vector<int64_t>& hosts, int64_t gpus) const;

  const Fabric& fabric_;
  const int64_t per_host_;
  int64_t free_ = 0;
  std::vector<int32_t> user_of_;
  std::vector<int64_t> free_of_host_;
  std::vector<std::vector<int64_t>> free_of_node_;  // per tier
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_FREE_GPUS_H_
