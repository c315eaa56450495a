#include "planner/search/recompute_words.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/bind/recompute.h"
#include "strategy/recompute/recompute_set.h"

namespace plancast {
std::vector<std::string> RecomputeSetsOf(const ModelGraph& graph, const SoftwareProfile& profile) {
  std::vector<std::string> sets = {""}, alone;
  for (const RecomputeSet& set : RecomputeSets()) {
    const CoveredOps ops = CoveredBy(set, graph, profile.recompute.norms_in_products);
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
    const RecomputeSet& set = **FindRecomputeSet(word);
    if (CoveredBy(set, graph, profile.recompute.norms_in_products).covered == 0) continue;
    sets.push_back(absl::StrCat("selective:", word));
    first.push_back(word);
    std::sort(first.begin(), first.end());  // as plans are printed
    if (first.size() > 1) sets.push_back(absl::StrCat("selective:", absl::StrJoin(first, "+")));
  }
  return sets;
}

}  // namespace plancast
