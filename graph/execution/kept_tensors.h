#ifndef PLANCAST_GRAPH_EXECUTION_KEPT_TENSORS_H_
#define PLANCAST_GRAPH_EXECUTION_KEPT_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/execution/execution_graph.h"

namespace plancast {

// A tensor that a layer keeps from its forward to its backward pass.
struct KeptTensor {
  std::string name;
  int64_t bytes = 0;
};

// Of each tensor that a forward block names, how much is kept.
std::vector<int64_t> KeptBytes(const Block& forward);
// What the forward block of a layer keeps, of at least `least_bytes` each.
std::vector<KeptTensor> KeptTensors(const Block& forward, int64_t least_bytes);
int64_t TotalBytes(const std::vector<KeptTensor>& tensors);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXECUTION_KEPT_TENSORS_H_
