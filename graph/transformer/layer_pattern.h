#ifndef PLANCAST_GRAPH_TRANSFORMER_LAYER_PATTERN_H_
#define PLANCAST_GRAPH_TRANSFORMER_LAYER_PATTERN_H_

#include <cstdint>
#include <vector>

#include "graph/transformer/transformer_config.h"

namespace plancast {

// What tells the layers of one model apart.
struct LayerKind {
  bool windowed = false;  // attention within config.window
  bool routed = false;    // experts in place of the feed-forward

  friend bool operator==(const LayerKind& a, const LayerKind& b) {
    return a.windowed == b.windowed && a.routed == b.routed;
  }
};

// Layers of one kind that follow one another.
struct LayerRun {
  LayerKind kind;
  int64_t count = 0;
};

// All layers in order; neighbouring runs differ. `config` is Completed. A window
// that holds the whole sequence is none.
std::vector<LayerRun> LayerPattern(const TransformerConfig& config);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_LAYER_PATTERN_H_
