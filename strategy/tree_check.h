#ifndef PLANCAST_STRATEGY_TREE_CHECK_H_
#define PLANCAST_STRATEGY_TREE_CHECK_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// A mesh axis and its size.
using SizedAxis = std::pair<std::string, int64_t>;

// A list of modules of a model: `layers`, 80 of them.
struct ListOfLayers {
  std::string path;
  int64_t layers = 0;
};

// Where the ops of a model are, as ModulePath has them: `layers.*.attn.qkv`.
struct ModelPaths {
  std::vector<std::string> ops;
  std::vector<ListOfLayers> lists;
};

// OK if all that nodes say takes effect; else an error that begins with the node:
// - every node holds for one op of the model at least (without ops no paths are checked), has
//   no layers that the model lacks, and names axes of the mesh only;
// - `pp` splits nothing;
// - homes do not shard over `pp`, at the root over `dp` alone, and do not contradict each other.
absl::Status CheckTree(const StrategyTree& tree, absl::Span<const SizedAxis> mesh,
                       const ModelPaths& model);

// OK if the model has an op or a module at the path, and all the layers that it says.
absl::Status CheckNodePath(const NodePath& node, absl::string_view path, const ModelPaths& model);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_TREE_CHECK_H_
