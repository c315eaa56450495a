#ifndef PLANCAST_TESTS_EXECUTOR_SHARING_RANDOM_SHARING_H_
#define PLANCAST_TESTS_EXECUTOR_SHARING_RANDOM_SHARING_H_

#include <cstdint>
#include <random>
#include <vector>

#include "cluster/link_sharing.h"
#include "cluster/machine.h"
#include "executor/sharing/activity_kinds.h"
#include "executor/sharing/fluid.h"
#include "executor/sharing/levels.h"

namespace plancast {

// Resources and kinds of activities of a test, drawn from a seed.
struct RandomSharing {
  struct Resource {
    int64_t capacity = 1;
    Level level = Level::kCluster;
  };
  struct Kind {
    int64_t cap = 1, weight = 1;
    int32_t priority = 0;
    std::vector<ActivityKinds::Use> uses;

    int64_t CapQ16() const { return (cap << 16) / weight * weight; }
  };
  int64_t unit = 1;  // bytes, and bytes a second: what numbers are multiples of
  std::vector<Resource> resources;
  std::vector<Kind> kinds;
};

// A machine in small: links of devices, hosts, pods and a spine. Kinds load links
// inside one host, one pod, or across, so that what is connected differs from
// moment to moment. Few distinct numbers, so that ties are many.
RandomSharing DrawSharing(std::mt19937& random);

// Adds all to a Fluid or to Levels.
inline void AddTo(Fluid& fluid, const RandomSharing::Resource& r) { fluid.AddResource(r.capacity); }
inline void AddTo(Levels& levels, const RandomSharing::Resource& r) {
  levels.AddResource(r.capacity, r.level);
}
template <typename Shares>
void AddAll(const RandomSharing& sharing, Shares& shares) {
  for (const RandomSharing::Resource& r : sharing.resources) AddTo(shares, r);
  for (const RandomSharing::Kind& k : sharing.kinds) {
    shares.AddKind(k.cap, k.weight, k.uses, k.priority);
  }
}

// The rates of these activities (kinds, repeated at will), 2^-16 bytes a second,
// by looking at everything at every level; shares no code with the kernel.
std::vector<int64_t> PlainRates(const RandomSharing& sharing, LinkSharing policy,
                                const std::vector<int>& active);

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_SHARING_RANDOM_SHARING_H_
