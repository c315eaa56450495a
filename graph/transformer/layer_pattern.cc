#include "graph/transformer/layer_pattern.h"

namespace plancast {

std::vector<LayerRun> LayerPattern(const TransformerConfig& config) {
  const bool windows = config.window > 0 && config.window < config.seq;
  const int64_t period = static_cast<int64_t>(config.window_pattern.size());
  std::vector<LayerRun> runs;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    LayerKind kind;
    kind.windowed = windows && (period == 0 || config.window_pattern[layer % period] == 'w');
    kind.routed = config.experts.present() && layer >= config.experts.dense_layers &&
                  (layer + 1) % config.experts.every == 0;
    if (runs.empty() || !(runs.back().kind == kind)) runs.push_back({kind, 0});
    ++runs.back().count;
  }
  return runs;
}

}  // namespace plancast
