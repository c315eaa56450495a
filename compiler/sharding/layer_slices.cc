#include "compiler/sharding/layer_slices.h"

#include <algorithm>

namespace plancast {

const std::vector<LayerSlices::Slice>& LayerSlices::Of(const OffloadFlow::Part& part, Phase phase,
                                                       bool fills) {
  slices_.clear();
  const int64_t end = part.layer_begin + part.count;
  if (phase == Phase::kForward) {
    if (part.layer_begin == part.run->layer_begin) gathered_ = gradients_.TakeGathered(*part.run);
    for (int64_t at = part.layer_begin; at < end; at += slices_.back().count) {
      slices_.push_back({at, end - at, {}});
      Slice& slice = slices_.back();
      for (const GradientFlow::GatheredPiece& piece : gathered_) {
        const int64_t piece_end = piece.layer_begin + piece.count;
        if (at < piece.layer_begin || at >= piece_end) continue;
        slice.joins.push_back({piece.instance, -1, -1});
        slice.count = std::min(slice.count, piece_end - at);
      }
    }
    return slices_;
  }
  int64_t most = gradients_.LayersOfFirstPiece(*part.run, fills);
  for (int64_t left = part.count; left > 0; left -= slices_.back().count) {
    const int64_t count = std::min(most, left);
    if (slices_.empty()) most = gradients_.LayersPerPiece(*part.run, fills);
    slices_.push_back({part.layer_begin + left - count, count, {}});
  }
  return slices_;
}

}  // namespace plancast
