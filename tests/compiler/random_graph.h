#ifndef PLANCAST_TESTS_COMPILER_RANDOM_GRAPH_H_
#define PLANCAST_TESTS_COMPILER_RANDOM_GRAPH_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "graph/model/model_graph.h"

namespace plancast {

// Names of the ops that a training step can hold: whatever has a gradient.
const std::vector<std::string>& TrainableRules();

// A model whose layers run the ops `rules` one after another on a stream [batch, seq,
// hidden]. What an op reads is a tensor that an op before it made, where one has its
// dims, or else some function of the stream, which is opaque; its result goes back
// into the stream. Dims have small even sizes, those that index maps reach what the
// maps ask for.
ModelGraph RandomGraph(const std::vector<std::string>& rules, int64_t layers, std::mt19937& random);

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_RANDOM_GRAPH_H_
