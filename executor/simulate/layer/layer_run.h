#ifndef PLANCAST_EXECUTOR_SIMULATE_LAYER_LAYER_RUN_H_
#define PLANCAST_EXECUTOR_SIMULATE_LAYER_LAYER_RUN_H_

#include <algorithm>
#include <cstdint>

#include "executor/simulate/layer/layer_outcome.h"
#include "executor/simulate/layer/outcome_cache.h"

namespace plancast {

// Layers of an instance that an entity runs at once, as one event.
struct LayerRun {
  bool active = false;
  int32_t instance = 0, first_layer = 0, layers = 0;
  bool partial = false;    // of a layer that streams have begun
  StreamMask streams = 0;  // that have not gone on yet
  StreamMask behind = 0;   // of these: still at a layer before
  // Kernels come after it before all of it is over: with its own it comes apart.
  bool tails = false;
  int64_t kernels_end = 0;  // of the last layer, after its beginning
  // TaskIndex::Place of the layer that came apart last where it began, for its kernels take no
  // time: at once it would again.
  int64_t apart_at = -1;
  int32_t variant = 0;  // of the block, in LayerVariants
  int64_t begin = 0, period = 0;
  LayerOutcome* outcome = nullptr;
  LayerConditions conditions;

  // The layer that runs now, of those left.
  int32_t LayerAt(int64_t now) const {
    return period == 0
               ? 0
               : static_cast<int32_t>(std::min<int64_t>((now - begin) / period, layers - 1));
  }
  int64_t end() const {
    return begin + (layers - 1) * period + (tails ? kernels_end : outcome->end);
  }
  // Whether others communicate alongside it both before and after a time.
  bool OthersLastThrough(int64_t time) const {
    bool before = false;
    for (const int64_t toggle : conditions.toggles) {
      if (toggle == time - begin && before) return false;  // they cease
      if (toggle < time - begin) before = !before;
    }
    return before;
  }
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_LAYER_LAYER_RUN_H_
