#ifndef PLANCAST_EXECUTOR_CLUSTER_LOOP_SET_H_
#define PLANCAST_EXECUTOR_CLUSTER_LOOP_SET_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "cluster/link_sharing.h"
#include "executor/cluster/loop.h"
#include "executor/sharing/fluid.h"

namespace plancast {

// What a loop lost because another was on a link with it.
struct LoopWait {
  int32_t waiter = 0, other = 0;  // members
  int32_t link = 0;
  double seconds = 0;
};

// A stretch of a loop as it ran.
struct LoopSlice {
  int32_t member = 0;
  bool transfer = false;
  int64_t iteration = 0, start_ps = 0, end_ps = 0;
};

// Loops that run beside each other, event by event. A value: a copy goes on from where
// the original is. Links with the same users in the same shares are one resource, and
// links that nobody competes for, or that are never full before another one, are none.
class LoopSet {
 public:
  static constexpr int64_t kNever = Fluid::kNever;

  struct Member {
    const Loop* loop = nullptr;  // outlives the set
    LoopState state;
    int64_t target = kNever;  // iterations; it stops there
  };
  struct Options {
    LinkSharing sharing = LinkSharing::kMaxMin;
    bool waits = false;         // keep account of who waits for whom
    int64_t slices_until = -1;  // keep slices that begin earlier, ps
  };

  // `capacities`: of all links, bytes a second.
  LoopSet(std::vector<Member> members, absl::Span<const int64_t> capacities, int64_t now,
          const Options& options);

  int size() const { return static_cast<int>(members_.size()); }
  const Loop& loop(int member) const { return *members_[member].loop; }
  int64_t target(int member) const { return members_[member].target; }
  int64_t now() const { return now_; }
  // When the next phase of something ends; kNever if all have stopped.
  int64_t NextEvent();
  // Not beyond NextEvent().
  void AdvanceTo(int64_t time_ps);
  // Those that came to their target and have stopped.
  const std::vector<int>& stopped() const { return stopped_; }

  LoopState StateOf(int member);
  int64_t IterationsOf(int member) const { return members_[member].state.iterations; }
  // Where each is, for comparison: phase, and what its phase has left of its computation and, at
  // the rate alone, of its transfer, ps.
  std::vector<int64_t> Positions();
  // How far two such lists are apart in the loop that differs most, ps.
  int64_t Distance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) const;

  // All goes on so much later, with so many more iterations of each and so much longer waits.
  void Skip(int64_t time_ps, const std::vector<int64_t>& iterations,
            const std::vector<double>& waits);

  std::vector<LoopWait> Waits() const { return WaitsOf(wait_seconds_); }
  // Of seconds in the order of wait_seconds(), which only grows.
  std::vector<LoopWait> WaitsOf(const std::vector<double>& seconds) const;
  const std::vector<double>& wait_seconds() const { return wait_seconds_; }
  const std::vector<LoopSlice>& slices() const { return slices_; }

 private:
  struct Running {
    int64_t compute_end = kNever;  // kNever: over
    int32_t transfer = -1;         // in the fluid, or -1: over
    int64_t transfer_start = 0, compute_start = 0;
  };

  void AddLinks(absl::Span<const int64_t> capacities);
  void StartPhase(int member);
  void EndPhases(int member);
  void CountWaits(int64_t until);
  void AddSlice(int member, bool transfer, int64_t start);

  std::vector<Member> members_;
  std::vector<Running> running_;
  Options options_;
  int64_t now_ = 0;
  Fluid fluid_;
  std::vector<int32_t> member_of_activity_;
  std::vector<int> stopped_;
  // Per member, of the fluid's resources: links that may be the first to be full.
  std::vector<std::vector<Fluid::Use>> fluid_uses_;
  // Of links where loops may wait, while waits are counted; and per member.
  std::vector<int32_t> link_of_;
  std::vector<double> capacity_of_;
  std::vector<std::vector<Fluid::Use>> uses_;
  // Waits: waiter, other and resource to a place in the seconds.
  absl::flat_hash_map<int64_t, int32_t> wait_places_;
  std::vector<double> wait_seconds_;
  std::vector<double> loads_;  // while waits are counted
  std::vector<LoopSlice> slices_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_LOOP_SET_H_
