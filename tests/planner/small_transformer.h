#ifndef PLANCAST_TESTS_PLANNER_SMALL_TRANSFORMER_H_
#define PLANCAST_TESTS_PLANNER_SMALL_TRANSFORMER_H_

#include "graph/transformer/transformer_config.h"

namespace plancast {

// Four layers, with what tp=16 cuts.
inline TransformerConfig SmallTransformer() {
  TransformerConfig config;
  config.name = "small";
  config.layers = 4;
  config.hidden = 512;
  config.heads = config.kv_heads = 16;
  config.head_dim = 32;
  config.ffn = 2048;
  config.vocab = 4096;  // not padded up to tp=16
  config.seq = 256;
  return config;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_SMALL_TRANSFORMER_H_
