#ifndef PLANCAST_EXECUTOR_SIMULATE_LAYER_OUTCOME_CACHE_H_
#define PLANCAST_EXECUTOR_SIMULATE_LAYER_OUTCOME_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "executor/simulate/layer/layer_outcome.h"

namespace plancast {

// How a layer of a variant of a block runs under certain conditions.
struct LayerOutcome {
  int32_t variant = -1;
  LayerConditions conditions;
  int64_t* times = nullptr;  // when each task starts, and when each ends
  int32_t room = 0;          // for so many
  int64_t end = 0;           // of all
  int32_t users = 0;         // runs that need it
  // Whether the next layer, if there is one, finds and does the same.
  enum : int8_t { kUnasked, kOnce, kRepeats } repeats = kUnasked;
  // Where its times are in the trace, and its number there; -1: not yet.
  int64_t trace_begin = -1;
  int32_t trace_number = -1;
};

// Remembers outcomes: in a steady state the same come again and again. Of those
// that share a place the latest stays.
class OutcomeCache {
 public:
  // The outcome of a variant under conditions, which is in use until Release.
  // `run(outcome)` makes it, with room for so many times, if it is not known.
  template <typename Run>
  LayerOutcome* Get(int32_t variant, const LayerConditions& conditions, int32_t times,
                    const Run& run) {
    LayerOutcome*& place = places_[PlaceOf(variant, conditions)];
    if (place != nullptr && place->variant == variant && place->conditions == conditions) {
      ++place->users;
      return place;
    }
    // Whoever uses the one before gives it back.
    if (place == nullptr || place->users > 0) place = Fresh();
    place->variant = variant;
    place->conditions = conditions;
    place->users = 1;
    place->trace_begin = place->trace_number = -1;
    if (place->room < times) MakeRoom(times, *place);
    run(*place);
    return place;
  }
  void Release(LayerOutcome* outcome) {
    if (--outcome->users > 0) return;
    if (places_[PlaceOf(outcome->variant, outcome->conditions)] != outcome) {
      free_.push_back(outcome);
    }
  }

 private:
  static constexpr size_t kPlaces = 1 << 12;

  static size_t PlaceOf(int32_t variant, const LayerConditions& conditions) {
    uint64_t hash = (static_cast<uint64_t>(variant) + 1) * 0x9e3779b97f4a7c15u;
    const auto mix = [&hash](int64_t value) {
      hash = (hash ^ static_cast<uint64_t>(value)) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    };
    mix(conditions.host);
    for (const int64_t toggle : conditions.toggles) mix(toggle);
    for (const LayerConditions::Ahead& ahead : conditions.ahead) {
      mix(int64_t{ahead.stream} << 32 | int64_t{ahead.task} << 16 | (ahead.rank + 1) << 1 |
          (ahead.runs ? 1 : 0));
      mix(ahead.since);
      mix(static_cast<int64_t>(ahead.work_left >> 16));
    }
    return hash & (kPlaces - 1);
  }
  LayerOutcome* Fresh() {
    if (free_.empty()) return &outcomes_.emplace_back();
    LayerOutcome* const fresh = free_.back();
    free_.pop_back();
    return fresh;
  }

  void MakeRoom(int32_t times, LayerOutcome& outcome) {
    if (chunks_.empty() || used_ + times > kChunk) {
      chunks_.push_back(std::make_unique<int64_t[]>(std::max(kChunk, times)));
      used_ = 0;
    }
    outcome.times = chunks_.back().get() + used_;
    outcome.room = times;
    used_ += times;
  }

  static constexpr int32_t kChunk = 1 << 13;

  std::vector<std::unique_ptr<int64_t[]>> chunks_;  // of times
  int32_t used_ = 0;                                // of the last
  std::deque<LayerOutcome> outcomes_;
  std::vector<LayerOutcome*> places_ = std::vector<LayerOutcome*>(kPlaces);
  std::vector<LayerOutcome*> free_;  // without a place
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_LAYER_OUTCOME_CACHE_H_
