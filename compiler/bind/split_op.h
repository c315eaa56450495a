#ifndef PLANCAST_COMPILER_BIND_SPLIT_OP_H_
#define PLANCAST_COMPILER_BIND_SPLIT_OP_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/body/place.h"
#include "graph/model/model_graph.h"
#include "graph/split/op_split.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// Which levels of what nodes say are of use to some op.
class SplitUse {
 public:
  // An op was asked to take a level of `said`.
  void Note(const ResolvedSplit& said, size_t level, const OpNode& op, bool taken);
  // Errors, which name the node: a level that ops were asked to take, and none did.
  absl::Status Check(const ModelGraph& graph, const StrategyTree& tree) const;

 private:
  struct Level {
    bool asked = false, taken = false;
    std::set<int> dims;  // of ops that did not take it
  };
  std::map<std::pair<std::string, std::string>, std::vector<Level>> used_;  // by node and axis
};

// Errors: a dim that the root of the tree names and neither the model nor the language has. Dims of
// other nodes are checked op by op.
absl::Status CheckRootDims(const ModelGraph& graph, const StrategyTree& tree);

// Of a body in which some op takes blocks of a dim that `zigzag` cuts, and none has a mask that is
// balanced so, the directives without that: its ops then agree, and the exchange stands at its
// ends.
void CutInBlocksWhereNeeded(const ModelGraph& graph, const Body& body,
                            std::vector<ResolvedSplit>* splits);

// The factor split of one op under resolved directives. `whole`: what the plan as a whole says of
// tp does not cut it. `use`: what it takes is noted there. `on`: the ranks that run it, whose axes
// cut nothing.
absl::StatusOr<FactorSplit> SplitOp(const ModelGraph& graph, const OpNode& op,
                                    const std::string& path, const Resolved& resolved,
                                    const DeviceMesh& mesh, bool whole = false,
                                    SplitUse* use = nullptr, const OnRanksOf& on = {});

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_SPLIT_OP_H_
