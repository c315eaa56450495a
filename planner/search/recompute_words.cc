#include "planner/search/recompute_words.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/bind/recompute.h"
#include "strategy/recompute/recompute_set.h"

namespace plancast {
namespace {

// Ops of the model's layers, and those of them that a set covers.
struct Covered {
  int64_t all = 0, covered = 0;
};

Covered CoveredBy(const RecomputeSet& set, const ModelGraph& graph,
                  const SoftwareProfile& profile) {
  Covered ops;
  for (const Segment& segment : graph.segments) {
    if (graph.HasLists() && !segment.in_list()) continue;
    const Body& body = graph.bodies[segment.body];
    for (size_t op = 0; op < body.ops.size(); ++op) {
      ++ops.all;
      if (Covers(set, body, op, profile.recompute.norms_in_products)) ++ops.covered;
    }
  }
  return ops;
}

}  // namespace

std::vector<std::string> RecomputeSetsOf(const ModelGraph& graph, const SoftwareProfile& profile) {
  std::vector<std::string> sets = {""}, alone;
  for (const RecomputeSet& set : RecomputeSets()) {
    const Covered ops = CoveredBy(set, graph, profile);
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

std::vector<std::string> UsualRecomputeSetsOf(const ModelGraph& graph,
                                              const SoftwareProfile& profile) {
  std::vector<std::string> sets, first;
  for (const std::string& word : profile.limits.recompute_words) {
    if (CoveredBy(**FindRecomputeSet(word), graph, profile).covered == 0) continue;
    sets.push_back(absl::StrCat("selective:", word));
    first.push_back(word);
    std::sort(first.begin(), first.end());  // as plans are printed
    if (first.size() > 1) sets.push_back(absl::StrCat("selective:", absl::StrJoin(first, "+")));
  }
  return sets;
}

}  // namespace plancast
