#include "compiler/body/place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

bool Place::Runs(const OnRanksOf& on) const {
  return empty() || std::all_of(on.begin(), on.end(), [this](const auto& ranks) {
           return at[ranks.first] == ranks.second;
         });
}

bool Place::Holds(const Layout& layout) const { return HoldsBeside(layout, {}); }

bool Place::HoldsBeside(const Layout& layout, const std::vector<int>& axes) const {
  if (empty()) return true;
  for (size_t a = 0; a < layout.placements.size(); ++a) {
    const Placement& placement = layout.placements[a];
    if (!placement.is_on() || placement.at == at[a]) continue;
    if (std::find(axes.begin(), axes.end(), static_cast<int>(a)) == axes.end()) return false;
  }
  return true;
}

std::string Place::DebugString() const {
  return absl::StrJoin(at, ",", [](std::string* out, int32_t coordinate) {
    absl::StrAppend(out, coordinate < 0 ? "-" : absl::StrCat(coordinate));
  });
}

}  // namespace plancast
