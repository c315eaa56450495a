#ifndef PLANCAST_EXECUTOR_CLUSTER_COMPETITION_H_
#define PLANCAST_EXECUTOR_CLUSTER_COMPETITION_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/int128.h"
#include "executor/cluster/loop.h"

namespace plancast {

// Which jobs share links that are too narrow for all of theirs.
class Competition {
 public:
  using LoopOf = std::function<const Loop&(int32_t job)>;

  Competition(absl::Span<const int64_t> capacities, LoopOf loop_of)
      : capacities_(capacities), loop_of_(std::move(loop_of)), links_(capacities.size()) {}

  // These jobs in sets such that no two of different sets compete, directly or through others. Each
  // ascends, and so do the sets by their first job.
  std::vector<std::vector<int32_t>> Sets(std::vector<int32_t> jobs);
  // Of jobs last handed to Sets(): the places in `order` of those that compete directly.
  std::vector<std::pair<int32_t, int32_t>> Pairs(absl::Span<const int32_t> order) const;

 private:
  // Among the jobs last handed in.
  struct OnLink {
    int64_t stamp = 0;
    int32_t first = -1;
    int128 demand = 0;  // at their rates alone, see ActivityKinds
  };
  bool IsTooNarrow(int32_t link) const {
    return links_[link].demand > int128{capacities_[link]} << 36;
  }

  const absl::Span<const int64_t> capacities_;
  const LoopOf loop_of_;
  std::vector<OnLink> links_;
  int64_t stamp_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_COMPETITION_H_
