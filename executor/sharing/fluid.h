#ifndef PLANCAST_EXECUTOR_SHARING_FLUID_H_
#define PLANCAST_EXECUTOR_SHARING_FLUID_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "base/int128.h"

namespace plancast {

// Activities that share resources by weighted max-min, in integers.
//
// A resource carries `capacity` bytes a second. An activity has work in bytes, a
// rate it never exceeds, a weight, and uses: per byte of its work a resource
// carries `coefficient` bytes. All rates rise together in proportion to the
// weights; an activity stops rising at its cap or as soon as one of its
// resources is full.
//
// Numbers are exact but for two roundings: the level at which a resource is full
// is floor-divided once, and the time of a completion is rounded up once. Sums
// are of products, so that m activities with coefficient c on a resource and one
// with coefficient m*c get the same level, bit for bit. Nothing depends on the
// order of calls at one point in time.
//
// A resource whose activities together cannot fill it never binds and is left
// out, and so is one with a single activity, whose limit is a cap. Nothing is
// allocated once as many activities have run at once as ever will.
class Fluid {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Use {
    int32_t resource = 0;
    int64_t coefficient_q20 = 0;  // fixed point, 2^-20
  };

  int32_t AddResource(int64_t capacity_bytes_per_s);
  // A kind of activity; `uses` names each resource once at most.
  int32_t AddKind(int64_t rate_cap_bytes_per_s, int64_t weight, absl::Span<const Use> uses);

  int64_t now() const { return now_; }
  int num_active() const { return static_cast<int>(active_.size()); }

  // Starts an activity at now() and returns its id, which is free again after
  // its completion was taken.
  int32_t Start(int32_t kind, int64_t work_bytes);
  void Remove(int32_t id);

  // When the next activity ends if nothing else starts; kNever if none does.
  int64_t NextCompletion();
  // Moves now() forward, not beyond NextCompletion(), and returns what ends there;
  // valid until the next call. What ended is removed.
  absl::Span<const int32_t> AdvanceTo(int64_t time_ps);

  // The rate of an activity now, 2^-16 bytes a second.
  int64_t RateQ16(int32_t id);
  // The time that an activity of this kind takes alone.
  int64_t AloneTime(int32_t kind, int64_t work_bytes) const;

 private:
  struct Resource {
    int128 capacity_q36 = 0;
    int128 demand_q36 = 0;  // of all active users at their caps
    int32_t users = 0;
    // While solving.
    int128 left_q36 = 0;
    int128 weight_q20 = 0;
    int64_t level = 0;
  };
  struct Kind {
    int64_t cap_q16 = 0;  // a multiple of the weight
    int64_t weight = 1;
    int64_t alone_q16 = 0;
    int32_t use_begin = 0, use_end = 0;
  };
  struct Activity {
    int128 left = 0;  // work left at `since`, in 2^-16 B/s times ps
    int64_t rate_q16 = 0;
    int64_t since = 0;
    int64_t end = kNever;
    int32_t kind = 0;
    int32_t position = 0;  // in active_
  };

  absl::Span<const Use> UsesOf(const Activity& activity) const;
  bool Binds(const Resource& resource) const {
    return resource.users > 1 && resource.demand_q36 > resource.capacity_q36;
  }
  bool Shares(const Activity& activity) const;
  void SetRate(Activity& activity, int64_t rate_q16);
  void Solve();
  void FixAtLevel(int64_t level);

  int64_t now_ = 0;
  bool dirty_ = false;
  std::vector<Resource> resources_;
  std::vector<Kind> kinds_;
  std::vector<Use> uses_;
  std::vector<Activity> activities_;
  std::vector<int32_t> free_, active_, completed_;
  // While solving: activities that still rise, and resources that may fill up.
  std::vector<int32_t> rising_, filling_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SHARING_FLUID_H_
