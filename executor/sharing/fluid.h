#ifndef PLANCAST_EXECUTOR_SHARING_FLUID_H_
#define PLANCAST_EXECUTOR_SHARING_FLUID_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/int128.h"
#include "cluster/link_sharing.h"
#include "executor/sharing/activity_kinds.h"
#include "executor/sharing/indexed_heap.h"

namespace plancast {

// Activities that share resources (ActivityKinds), in integers.
//
// kMaxMin: all rates rise together in proportion to the weights; an activity
// stops rising at its cap or as soon as one of its resources is full. kPriority:
// the same by one class of priority after the other, the lowest number first,
// each with the capacity that those before leave, which may be none.
//
// Numbers are exact but for two roundings: the level at which a resource is full
// is floor-divided once, and the time of a completion is rounded up once. Sums
// are of products, so that m activities with coefficient c on a resource and one
// with coefficient m*c get the same level, bit for bit. What stops at one level
// stops at once, and nothing depends on the order of calls at one point in time.
//
// A resource whose activities together cannot fill it never binds and is left
// out, and so is one with a single activity, whose limit is a cap. A start or an
// end solves again only the activities that it is connected to through binding
// resources, which gives what solving all would give. Nothing is allocated once
// as many activities of each kind have run at once as ever will.
class Fluid {
 public:
  static constexpr int64_t kNever = ActivityKinds::kNever;
  using Use = ActivityKinds::Use;
  // How far an activity has come.
  struct Progress {
    int128 left = 0;  // work left at `since`, in 2^-16 B/s times ps
    int64_t rate_q16 = 0;
    int64_t since = 0;
    int64_t end = kNever;

    int128 LeftAt(int64_t now) const {
      return std::max<int128>(left - int128{rate_q16} * (now - since), 0);
    }
  };

  static Progress Fresh(int64_t work_bytes, int64_t now);

  explicit Fluid(LinkSharing policy = LinkSharing::kMaxMin) : policy_(policy) {}

  int32_t AddResource(int64_t capacity_bytes_per_s);
  // See ActivityKinds. Only kPriority looks at the priority.
  int32_t AddKind(int64_t rate_cap_bytes_per_s, int64_t weight, absl::Span<const Use> uses,
                  int32_t priority = 0);
  int32_t AddKind(const ActivityKinds::Kind& kind, absl::Span<const Use> uses);

  int64_t now() const { return now_; }
  int num_active() const { return completions_.size(); }

  // Starts an activity at now() and returns its id, which is free again after
  // its completion was taken.
  int32_t Start(int32_t kind, int64_t work_bytes);
  void Remove(int32_t id);
  // For an activity that goes on in another Fluid, at the same time.
  Progress Take(int32_t id);
  int32_t Put(int32_t kind, const Progress& progress);

  Progress ProgressOf(int32_t id);
  // All goes on so much later.
  void Shift(int64_t time_ps);

  // When the next activity ends if nothing else starts; kNever if none does.
  int64_t NextCompletion();
  // Moves now() forward, not beyond NextCompletion(), and returns what ends there,
  // in no order; valid until the next call. What ended is removed.
  absl::Span<const int32_t> AdvanceTo(int64_t time_ps);

  // The rate of an activity now, 2^-16 bytes a second.
  int64_t RateQ16(int32_t id);
  // The time that an activity of this kind takes alone.
  int64_t AloneTime(int32_t kind, int64_t work_bytes) const {
    return kinds_.AloneTime(kind, work_bytes);
  }

  // Whether every solution is compared with one of everything; a difference ends
  // the program. Debug builds do; tests may in any build.
  static void CheckSolutions(bool check) { check_solutions_ = check; }
  static bool ChecksSolutions() { return check_solutions_.load(std::memory_order_relaxed); }

 private:
  struct User {
    int32_t activity = 0;
    int32_t use = 0;  // ActivityKinds::use
  };
  struct Resource {
    int128 capacity_q36 = 0;
    // What all active users ask for at their caps, and at level one.
    int128 demand_q36 = 0, demand_q20 = 0;
    std::vector<User> users;
    bool overloads = false;  // its users at their caps would
    bool changed = false;    // since the last solution
    // While solving.
    int128 left_q36 = 0;
    int128 weight_q20 = 0;  // of the users that rise
    int64_t reached = 0, pass = 0;
    int64_t least_level = 0;
    bool stale = false;  // its level in filling_ is a lower bound

    bool Binds() const { return overloads && users.size() > 1; }
    void AddDemand(int128 q20, int64_t cap_level) {
      demand_q20 += q20;
      demand_q36 += q20 * cap_level;
      overloads = demand_q36 > capacity_q36;
    }
    int64_t Level() const;
  };
  struct Activity {
    Progress progress;
    int64_t reached = 0, rises = 0;  // while solving
    int32_t kind = 0;
    int32_t first_place = 0;  // places_ of its uses
    int32_t next_free = -1;
  };

  absl::Span<const Use> UsesOf(const Activity& activity) const {
    return kinds_.UsesOf(activity.kind);
  }
  void MarkChanged(int32_t resource);
  // Joins its resources and says whether one binds.
  bool Enter(int32_t kind, const Progress& progress, int32_t* id);
  void SetRate(int32_t id, int64_t rate_q16);
  void TimeCompletions();

  // fluid_solve.cc
  void Solve();
  void Reach();
  void PrepareAll();
  void PrepareClass(const int32_t* begin, const int32_t* end);
  void Rise(int32_t id);
  int64_t FirstLevel(int32_t resource);
  void FillUp(int64_t rising);
  void OrderLevels();
  int64_t NextLevel();
  int64_t NextOfFew();
  void Stop(int32_t id);
  void StopAt(int64_t level);
  void StopFewAt(int64_t level);
  void StopManyAt(int64_t level);
  void CheckAgainstAll();

  const LinkSharing policy_;
  int64_t now_ = 0;
  std::vector<Resource> resources_;
  ActivityKinds kinds_;
  std::vector<int32_t> free_;  // per kind: an activity that is over, or -1; others follow
  std::vector<Activity> activities_;
  std::vector<int32_t> places_;  // where an activity stands among the users of its resources
  IndexedHeap completions_;
  std::vector<int32_t> completed_;
  std::vector<int32_t> changed_;  // resources
  std::vector<int32_t> moved_;    // activities with a new end

  // While solving. Stamps tell what this solution and this pass have met.
  int64_t solution_ = 0, pass_ = 0;
  bool checks_ = false;
  std::vector<int32_t> reached_;    // resources
  std::vector<int32_t> component_;  // activities
  // Levels at which resources are full, at the earliest, and caps; heaps unless they are few.
  std::vector<std::pair<int64_t, int32_t>> filling_, capped_;
  bool few_ = false;
  std::vector<int32_t> stopped_;
  static std::atomic<bool> check_solutions_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SHARING_FLUID_H_
