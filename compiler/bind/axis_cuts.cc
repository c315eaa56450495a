#include "compiler/bind/axis_cuts.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {

void AxisCuts::Add(absl::string_view axis, int64_t ranks, absl::string_view by) {
  cuts_[std::string(axis)].try_emplace(ranks, by);
}

absl::StatusOr<DeviceMesh> AxisCuts::Cut(DeviceMesh mesh) const {
  for (const auto& [name, asked] : cuts_) {
    ASSIGN_OR_RETURN(const int axis, mesh.FindAxis(name));
    std::map<int64_t, std::string> ends = asked;
    ends.try_emplace(mesh.size(axis), "the axis");
    std::vector<int64_t> sizes;
    std::pair<int64_t, std::string> before = {1, ""};
    for (const auto& [end, by] : ends) {
      if (end % before.first != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("axis `", name, "` of size ", mesh.size(axis), " is cut into parts of ",
                         before.first, " ranks by ", before.second, " and into parts of ", end,
                         " by ", by, ", and neither divides the other. Use sizes that do."));
      }
      sizes.insert(sizes.begin(), end / before.first);
      before = {end, by};
    }
    if (sizes.size() == 1) sizes.insert(sizes.begin(), 1);
    ASSIGN_OR_RETURN(mesh, mesh.Subdivide(axis, sizes));
  }
  return mesh;
}

std::vector<int> AxesBetween(const DeviceMesh& mesh, const std::vector<int>& axes, int64_t ranks,
                             int64_t parts) {
  std::vector<int> between;
  int64_t inside = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t size = mesh.size(axes[i]);
    if (size > 1 && inside >= ranks && inside < ranks * parts) {
      between.insert(between.begin(), axes[i]);
    }
    inside *= size;
  }
  return between;
}

}  // namespace plancast
