#include "planner/forecast/tuned_pieces.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {

bool LeavesPiecesOpen(const StrategyTree& tree) {
  return std::any_of(tree.nodes().begin(), tree.nodes().end(), [](const auto& node) {
    const std::vector<Rewrite>& said = node.second.rewrites;
    return std::any_of(said.begin(), said.end(), [](const Rewrite& r) { return r.tuned(); });
  });
}

absl::StatusOr<StrategyTree> TunePieces(
    StrategyTree tree, int64_t most,
    const std::function<absl::StatusOr<int64_t>(const StrategyTree&)>& time,
    std::map<std::string, std::string>* chosen) {
  std::vector<std::pair<std::string, size_t>> open;  // node and which of its rewrites
  for (const auto& [path, node] : tree.nodes()) {
    for (size_t r = 0; r < node.rewrites.size(); ++r) {
      if (node.rewrites[r].tuned()) open.emplace_back(path, r);
    }
  }
  for (const auto& [path, r] : open) {
    ASSIGN_OR_RETURN(Directives * node, tree.Node(path));
    node->rewrites[r].pieces = 1;
  }
  if (open.empty()) return tree;
  ASSIGN_OR_RETURN(int64_t least, time(tree));
  for (const auto& [path, r] : open) {
    ASSIGN_OR_RETURN(Directives * node, tree.Node(path));
    Rewrite& rewrite = node->rewrites[r];
    int64_t best = 1;
    for (int64_t pieces = 2; pieces <= most; pieces *= 2) {
      rewrite.pieces = pieces;
      const absl::StatusOr<int64_t> taken = time(tree);
      if (!taken.ok() || *taken >= least) continue;
      least = *taken;
      best = pieces;
    }
    rewrite.pieces = best;
    (*chosen)[absl::StrCat("pieces of ", path, ".", rewrite.ops[0])] = absl::StrCat(best);
  }
  return tree;
}

}  // namespace plancast
