#ifndef PLANCAST_EXECUTOR_SHARING_LEVELS_H_
#define PLANCAST_EXECUTOR_SHARING_LEVELS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cluster/machine.h"
#include "executor/sharing/fluid.h"
#include "executor/sharing/indexed_heap.h"
#include "executor/sharing/level_tree.h"

namespace plancast {

// Activities that share the links of a machine, level by level: device -> host ->
// domain -> pod -> cluster. Does what one Fluid over everything does, bit for bit,
// and has its face.
//
// Each domain (LevelTree) solves what is local to it in a small Fluid of its own.
// Only what crosses its border is handed up: while an activity of an outer domain
// loads links of an inner one, the activities inside go on in the Fluid of the
// outer domain, and so do those that start meanwhile. Once none of these is left,
// the inner domain is by itself again.
//
// Resources and kinds come first; the first start settles them.
class Levels {
 public:
  static constexpr int64_t kNever = Fluid::kNever;

  explicit Levels(LinkSharing policy = LinkSharing::kMaxMin) : policy_(policy) {}

  // `contended`: those of its users that may meet can fill it.
  int32_t AddResource(int64_t capacity_bytes_per_s, Level level = Level::kCluster,
                      bool contended = true);
  // See ActivityKinds.
  int32_t AddKind(int64_t rate_cap_bytes_per_s, int64_t weight, absl::Span<const Fluid::Use> uses,
                  int32_t priority = 0) {
    return kinds_.AddKind(rate_cap_bytes_per_s, weight, uses, priority);
  }

  int64_t now() const { return now_; }
  int num_active() const { return num_active_; }
  const LevelTree& tree() const { return tree_; }
  int32_t KindOf(int32_t id) const { return activities_[id].kind; }
  // The domain whose Fluid has an activity now.
  int32_t DomainOf(int32_t id) const { return activities_[id].domain; }

  // See Fluid.
  int32_t Start(int32_t kind, int64_t work_bytes) {
    return Start(kind, Fluid::Fresh(work_bytes, now_));
  }
  // What is in flight already.
  int32_t Start(int32_t kind, const Fluid::Progress& progress);
  // An activity goes on as one of another kind that loads the same resources.
  void ChangeKind(int32_t id, int32_t kind);
  void Remove(int32_t id) { Take(id); }
  // For what goes on elsewhere.
  Fluid::Progress Take(int32_t id);
  int64_t NextCompletion() {
    if (!touched_.empty() || flat_ != nullptr) TimeCompletions();
    return completions_.least_key();
  }
  absl::Span<const int32_t> AdvanceTo(int64_t time_ps) {
    completed_.clear();
    if (NextCompletion() <= time_ps || flat_ != nullptr) {
      EndUntil(time_ps);
    } else {
      now_ = time_ps;
    }
    return completed_;
  }
  int64_t RateQ16(int32_t id);
  Fluid::Progress ProgressOf(int32_t id) const {
    return domains_[activities_[id].domain].fluid->ProgressOf(activities_[id].id);
  }
  // All goes on so much later.
  void Shift(int64_t time_ps);
  int64_t AloneRateQ16(int32_t kind) const { return kinds_[kind].AloneQ16(); }
  // Of an activity of the first of these kinds while there is one of each, and nothing else.
  int64_t RateAmongQ16(absl::Span<const int32_t> kinds) const;
  int64_t AloneTime(int32_t kind, int64_t work_bytes) const {
    return kinds_.AloneTime(kind, work_bytes);
  }

 private:
  struct Domain {
    // Activities of outer domains' Fluids that load its links or those inside.
    // Its own Fluid is empty meanwhile.
    int32_t visitors = 0;
    bool touched = false;  // since its completion was asked for
    std::unique_ptr<Fluid> fluid;
    std::vector<int32_t> active;  // activities in its Fluid
    std::vector<int32_t> ids;     // by their ids there
  };
  struct Activity {
    int32_t kind = 0;
    int32_t domain = 0;
    int32_t id = 0;     // in the domain's Fluid
    int32_t place = 0;  // among those active there
    int32_t flat_id = 0;
  };

  void Settle();
  // Asks domains that have changed when something ends in them.
  void TimeCompletions();
  void EndUntil(int64_t time_ps);
  // The Fluid of a domain, at now().
  Fluid& At(int32_t domain);
  void Build(int32_t domain);
  void Put(int32_t id, int32_t domain, const Fluid::Progress& progress);
  Fluid::Progress TakeFromDomain(int32_t id);
  void Leave(const Activity& activity);
  // Moves what is in the Fluid of a domain to that of one around it.
  void HandUp(int32_t inner, int32_t outer);
  // Counts an activity in or out of the domains that it visits.
  void CountVisits(const Activity& activity, int32_t by);
  void CountWay(int32_t inner, int32_t outer, int32_t by);
  void Forget(int32_t id);
  void CheckAgainstFlat();

  const LinkSharing policy_;
  int64_t now_ = 0;
  int num_active_ = 0;
  bool settled_ = false;
  ActivityKinds kinds_;
  std::vector<int64_t> capacities_;
  std::vector<Level> levels_;
  std::vector<bool> contended_;
  LevelTree tree_;
  std::vector<Domain> domains_;
  IndexedHeap completions_;  // the next of each domain
  std::vector<int32_t> touched_;
  std::vector<Activity> activities_;
  std::vector<int32_t> free_, completed_;
  std::vector<int32_t> handed_;          // domains, while an activity starts
  std::vector<int32_t> place_in_fluid_;  // of resources, while a Fluid is built
  std::unique_ptr<Fluid> flat_;          // if solutions are checked
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SHARING_LEVELS_H_
