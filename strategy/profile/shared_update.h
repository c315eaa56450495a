#ifndef PLANCAST_STRATEGY_PROFILE_SHARED_UPDATE_H_
#define PLANCAST_STRATEGY_PROFILE_SHARED_UPDATE_H_

#include <set>

#include "base/memo_key.h"
#include "strategy/profile/optimizer_type.h"

namespace plancast {

// What goes over the ranks that share the optimizer's state (zero=1): gradients before its step,
// parameters behind it. Fields as the profile's text has them (proto/software_profile.proto).
struct SharedUpdate {
  std::set<OptimizerType> whole_reductions;  // of others each rank gets the sum of its share alone
  bool ReducesWhole(OptimizerType type) const { return whole_reductions.count(type) > 0; }
  // Parameters come as lists of the ranks' parts: the host's time for a part of one tensor. 0: they
  // are gathered in place.
  double part_s = 0;
  bool owners_broadcast = false;  // ranks have whole tensors, which they broadcast in turn
  PLANCAST_KEY_FIELDS(SharedUpdate, whole_reductions, part_s, owners_broadcast)
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_SHARED_UPDATE_H_
