#ifndef PLANCAST_EXECUTOR_SIMULATE_SNAPSHOT_H_
#define PLANCAST_EXECUTOR_SIMULATE_SNAPSHOT_H_

#include <cstdint>
#include <vector>

#include "base/int128.h"
#include "executor/simulate/index/task_index.h"

namespace plancast {

// All that goes on at a point in time: figures, times from then on, and where in programs it
// does. Two are compared to find a steady state.
class Snapshot {
 public:
  static constexpr int64_t kNoTime = -1;
  // A task that an entity's host has waited for, and when it was over. The host's clock goes
  // on from the last; instance -1: from the beginning.
  struct HostSync {
    int32_t entity = 0;
    bool first = false;  // the last before all that streams are at
    TaskRef task;
    int64_t end = 0;
  };
  struct Place {
    int32_t entity = 0, instance = 0;
    int stream = 0;  // that is there, or waits for what is
  };

  // Of nothing so far, in the memory of what it was.
  void Begin(int64_t now) {
    now_ = now;
    hash_ = 0;
    exact_.clear();
    places_.clear();
    syncs_.clear();
  }
  void Exact(int64_t value) {
    exact_.push_back(value);
    hash_ = (hash_ ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 32;
  }
  void Wide(int128 value) {
    Exact(static_cast<int64_t>(value >> 64));
    Exact(static_cast<int64_t>(value));
  }
  void Time(int64_t time) { Exact(time == kNoTime ? kNoTime : time - now_); }
  void At(int32_t entity, int32_t instance, int stream) {
    places_.push_back({entity, instance, stream});
  }
  void Waited(const HostSync& sync) { syncs_.push_back(sync); }

  int64_t now() const { return now_; }
  // Equal if all figures are.
  uint64_t hash() const { return hash_; }
  const std::vector<int64_t>& exact() const { return exact_; }
  const std::vector<Place>& places() const { return places_; }
  const std::vector<HostSync>& syncs() const { return syncs_; }  // entity by entity

 private:
  int64_t now_ = 0;
  uint64_t hash_ = 0;
  std::vector<int64_t> exact_;
  std::vector<Place> places_;
  std::vector<HostSync> syncs_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_SNAPSHOT_H_
