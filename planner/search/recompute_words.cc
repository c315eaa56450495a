#include "planner/search/recompute_words.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "strategy/recompute/recompute_set.h"

namespace plancast {
namespace {

// Ops of the model's layers, and those of them that a set covers.
struct Covered {
  int64_t all = 0, covered = 0;
};

Covered CoveredBy(const RecomputeSet& set, const ModelGraph& graph) {
  Covered ops;
  for (const Segment& segment : graph.segments) {
    if (graph.HasLists() && !segment.in_list()) continue;
    for (const OpNode& op : graph.bodies[segment.body].ops) {
      ++ops.all;
      if (AnyMatches(set.ops, op.name, op.rule->name(), op.recompute_group)) ++ops.covered;
    }
  }
  return ops;
}

}  // namespace

std::vector<std::string> RecomputeSetsOf(const ModelGraph& graph) {
  std::vector<std::string> sets = {""}, alone;
  for (const RecomputeSet& set : RecomputeSets()) {
    const Covered ops = CoveredBy(set, graph);
    if (ops.covered == 0) continue;
    if (ops.covered == ops.all) {
      alone.push_back(absl::StrCat("selective:", set.word));
      continue;
    }
    for (size_t i = 0, count = sets.size(); i < count; ++i) {
      sets.push_back(sets[i].empty() ? absl::StrCat("selective:", set.word)
                                     : absl::StrCat(sets[i], "+", set.word));
    }
  }
  sets.erase(sets.begin());
  sets.insert(sets.end(), alone.begin(), alone.end());
  return sets;
}

}  // namespace plancast
