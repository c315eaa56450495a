#ifndef PLANCAST_COMPILER_SHARDING_LAYER_SLICES_H_
#define PLANCAST_COMPILER_SHARDING_LAYER_SLICES_H_

#include <cstdint>
#include <vector>

#include "compiler/activations/offload_flow.h"
#include "compiler/program/program_writer.h"
#include "compiler/sharding/gradient_flow.h"

namespace plancast {

// Where data parallelism cuts the layers of a part: forward, pieces whose parameters are
// gathered together; backward, those whose gradients fill a bucket.
class LayerSlices {
 public:
  // Layers that run as one instance.
  struct Slice {
    int64_t layer_begin, count;
    std::vector<Join> joins;  // what it waits for
  };

  explicit LayerSlices(GradientFlow* gradients) : gradients_(*gradients) {}

  // In the order of the phase; good until the next call. The parts of a run follow one
  // another, from its first layer on. `fills`: gradients of the pass are reduced.
  const std::vector<Slice>& Of(const OffloadFlow::Part& part, Phase phase, bool fills);

 private:
  GradientFlow& gradients_;
  std::vector<GradientFlow::GatheredPiece> gathered_;  // of the run
  std::vector<Slice> slices_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_LAYER_SLICES_H_
