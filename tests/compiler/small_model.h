#ifndef PLANCAST_TESTS_COMPILER_SMALL_MODEL_H_
#define PLANCAST_TESTS_COMPILER_SMALL_MODEL_H_

#include <cstdint>

#include "graph/transformer/transformer_config.h"

namespace plancast {

// Layers of 8 * 64 * 64 parameters, without biases and norms' weights counted apart.
inline TransformerConfig SmallModel(int64_t layers = 6) {
  TransformerConfig config;
  config.name = "small";
  config.layers = layers;
  config.hidden = 64;
  config.heads = 8;
  config.ffn = 256;
  config.vocab = 1024;
  config.seq = 16;
  return config;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_SMALL_MODEL_H_
