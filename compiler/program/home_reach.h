#ifndef PLANCAST_COMPILER_PROGRAM_HOME_REACH_H_
#define PLANCAST_COMPILER_PROGRAM_HOME_REACH_H_

#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "compiler/bind/bind.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// What the homes and buckets that nodes say have to do with: a word without effect is refused.
class HomeReach {
 public:
  HomeReach(const BoundModel& bound, const StrategyTree& tree) : bound_(bound), tree_(tree) {}

  // `op` of a segment reads a parameter, whose gradients are reduced `in_buckets`, and which has
  // copies that `shares_out` says a home over an axis cuts.
  void NoteParameter(int segment, const OpNode& op, bool trained, bool in_buckets,
                     const std::function<bool(const std::string& axis)>& shares_out);
  // `op` reads a table with sparse gradients, which has no home but where its op is.
  void NoteTable(int segment, const OpNode& op);
  // A segment with `op` has activations that the home moves.
  void NoteActivations(int segment, const OpNode& op, const Home& home);

  // Errors: a node whose homes, or whose bucket, nothing below has.
  absl::Status Check() const;

 private:
  // Of the parameters below a node; `shared`: of the axes that its homes name.
  struct Reach {
    bool trained = false, buckets = false;
    std::set<std::string> shared;
  };

  // Calls `use(node, directives)` for the nodes of the tree that `op` is below. Bodies are shared
  // by layers of which several nodes say the same.
  template <typename Use>
  void ForEachNodeOver(int segment, const OpNode& op, Use use) const;

  const BoundModel& bound_;
  const StrategyTree& tree_;
  std::map<std::string, Reach> reach_;  // by node
  std::set<std::string> moving_;        // nodes whose homes move activations
  std::set<std::string> tables_;        // nodes over tables with sparse gradients
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_HOME_REACH_H_
