#include "tests/fuzz/native/target.h"

#include <algorithm>
#include <utility>

#include "tests/fuzz/native/targets/groups.h"

namespace plancast {

const std::vector<FuzzTarget>& FuzzTargets() {
  static const auto* const targets = [] {
    auto* all = new std::vector<FuzzTarget>;
    for (const auto& group : {DescriptionTargets(), PlanTargets(), RuleTargets(), TraceTargets(),
                              NcclTargets(), MscclTargets(), AstraTargets()}) {
      all->insert(all->end(), group.begin(), group.end());
    }
    std::sort(all->begin(), all->end(),
              [](const FuzzTarget& a, const FuzzTarget& b) { return a.name < b.name; });
    return all;
  }();
  return *targets;
}

const FuzzTarget* FindFuzzTarget(absl::string_view name) {
  for (const FuzzTarget& target : FuzzTargets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace plancast
