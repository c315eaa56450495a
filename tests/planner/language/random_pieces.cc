#include "tests/planner/language/random_pieces.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plancast {
namespace {

void Say(Dice& dice, const std::string& path, bool ends, StrategyTree* tree) {
  const auto node = tree->Node(path);
  PLANCAST_CHECK_OK(node);
  PiecesDirective& pieces = (*node)->pieces;
  pieces.micro_batches = dice.Of<int64_t>({2, 2, 2, 4, 8});
  if (ends && !dice.Maybe(3)) pieces.max_ongoing = {dice.Of<int64_t>({1, 1, 2})};
}

}  // namespace

void DrawUnits(Dice& dice, const ModelGraph& graph, StrategyTree* tree) {
  ShortForm& plan = tree->plan();
  const bool shards = plan.zero.value_or(0) >= 2;
  if (shards && plan.recompute == "uniform") {
    plan.unit = plan.recompute_layers;
  } else if (shards) {
    plan.unit = dice.Of<int64_t>({1, 2, 2, 3});
  }
  if (!dice.Maybe(4)) return;
  for (const Segment& segment : graph.segments) {
    if (!segment.in_list()) continue;
    const auto said = tree->Node(segment.path + dice.Of<std::string>({".*", ".*", "[1:]", "[:2]"}));
    PLANCAST_CHECK_OK(said);
    Directives& node = **said;
    node.unit_layers = dice.Of<int64_t>({1, 2, 2, 3});
    if (shards) return;
    node.home = {};
    node.home[dice.Maybe(2) ? HomeKind::kWeights : HomeKind::kGradients] =
        *ParseHome(HomeKind::kWeights, dice.Maybe(4) ? "host" : "shard(dp)");
    return;
  }
}

void DrawPieces(Dice& dice, const ModelGraph& graph, StrategyTree* tree) {
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    const Body& body = graph.bodies[segment.body];
    const std::string path = ModelGraph::PathOf(segment);
    const bool ends = s + 1 == graph.segments.size();
    if (dice.Maybe(6)) Say(dice, path, ends, tree);
    if (!dice.Maybe(3)) continue;
    const std::string& op = body.ops[dice.Below(static_cast<int64_t>(body.ops.size()))].name;
    const std::string part = dice.Maybe(2) ? op : op.substr(0, op.find('.'));
    Say(dice, absl::StrCat(path, ".", part), ends && op == body.ops.back().name, tree);
  }
}

}  // namespace plancast
