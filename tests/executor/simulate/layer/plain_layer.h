#ifndef PLANCAST_TESTS_EXECUTOR_SIMULATE_LAYER_PLAIN_LAYER_H_
#define PLANCAST_TESTS_EXECUTOR_SIMULATE_LAYER_PLAIN_LAYER_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/layer/layer_outcome.h"

namespace plancast {

struct PlainTimes {
  // -1: not known. The last end is that of a stream that is behind.
  std::vector<int64_t> start, end;
};

// What LayerRunner does, by looking at every picosecond. Small times only.
class PlainLayer {
 public:
  PlainLayer(const Block& block, const BlockIndex& index, const LayerCosts& costs,
             const LayerConditions& conditions)
      : block_(block), index_(index), costs_(costs), conditions_(conditions) {}

  PlainTimes Run() const;
  // From a stop. Times of what was over before are not known.
  PlainTimes GoOn(int64_t time, const LayerStop& stop) const;

 private:
  struct State;

  PlainTimes Go(State state) const;

  const Block& block_;
  const BlockIndex& index_;
  const LayerCosts& costs_;
  const LayerConditions& conditions_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_SIMULATE_LAYER_PLAIN_LAYER_H_
