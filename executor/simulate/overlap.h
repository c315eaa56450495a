#ifndef PLANCAST_EXECUTOR_SIMULATE_OVERLAP_H_
#define PLANCAST_EXECUTOR_SIMULATE_OVERLAP_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/simulate/events.h"
#include "executor/simulate/simulate.h"

namespace plancast {

// What overlaps on each entity: communications, by which its kernels are slower, and
// kernels, by which its transfers are. Only communications that use SMs count.
class Overlap {
 public:
  struct Entity {
    int32_t comms = 0;      // in flight, outside its layer run
    int32_t open = 0;       // of those, with an end not known yet
    int64_t over_at = 0;    // when the others are over
    int32_t transfers = 0;  // that kernels slow down
    bool busy = false;      // as far as those know, a kernel runs
    bool doubted = false;   // whether it does has to be looked at
  };

  explicit Overlap(const SimInput& in);

  bool slows_kernels() const { return slows_kernels_; }
  bool slows_transfers() const { return slows_transfers_; }
  Entity& of(int32_t entity) { return entities_[entity]; }
  const Entity& of(int32_t entity) const { return entities_[entity]; }

  // A communication is in flight on an entity, until a time or kNever: not known yet.
  void Begin(int32_t entity, int64_t until) {
    Entity& own = entities_[entity];
    if (own.comms++ == 0) own.over_at = 0;
    if (until == Events::kNever) {
      ++own.open;
    } else {
      own.over_at = std::max(own.over_at, until);
    }
  }
  // One is no longer; `known`: its end was.
  void End(int32_t entity, bool known) {
    --entities_[entity].comms;
    if (!known) --entities_[entity].open;
  }

  // An entity may have begun or ended to run kernels.
  void Doubt(int32_t entity) {
    Entity& own = entities_[entity];
    if (own.transfers == 0 || own.doubted) return;
    own.doubted = true;
    doubted_.push_back(entity);
  }
  bool doubts() const { return !doubted_.empty(); }
  // Calls `look(entity)` for all of which that was said.
  template <typename Look>
  void Settle(const Look& look) {
    for (const int32_t entity : doubted_) {
      entities_[entity].doubted = false;
      if (entities_[entity].transfers > 0) look(entity);
    }
    doubted_.clear();
  }

 private:
  const bool slows_kernels_, slows_transfers_;
  std::vector<Entity> entities_;
  std::vector<int32_t> doubted_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_OVERLAP_H_
