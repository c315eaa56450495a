#include "compiler/bind/op_places.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {

absl::StatusOr<OnRanksOf> RanksOfOp(const Resolved& resolved, const std::string& path,
                                    const DeviceMesh& mesh) {
  OnRanksOf ranks;
  for (const ResolvedOn& on : resolved.on) {
    const std::vector<int> axes = mesh.AxesOf(on.directive.axis);
    ASSIGN_OR_RETURN(const OnRanks run, RanksOf(on.directive, mesh.SizeOf(axes)),
                     _ << "`" << path << "`");
    int64_t inner = mesh.SizeOf(axes), rest = run.first;
    for (const int axis : axes) {
      if (inner == run.count) break;
      inner /= mesh.size(axis);
      if (mesh.size(axis) > 1) ranks.emplace_back(axis, static_cast<int32_t>(rest / inner));
      rest %= inner;
    }
    if (inner == run.count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("`", path, "` is on ", run.count, " ranks of `", on.directive.axis,
                     "`, which other nodes or `ep`, `hsdp` cut otherwise (", mesh.DebugString(),
                     "). Take parts that nest in these."));
  }
  return ranks;
}

OnRanksOf RanksOfHome(const Home& home, const DeviceMesh& mesh) {
  OnRanksOf ranks;
  if (!home.rank.has_value()) return ranks;
  const std::vector<int> axes = mesh.AxesOf(home.axis);
  int64_t inner = mesh.SizeOf(axes);
  for (const int axis : axes) {
    inner /= mesh.size(axis);
    if (mesh.size(axis) == 1) continue;
    ranks.emplace_back(axis, static_cast<int32_t>(*home.rank / inner % mesh.size(axis)));
  }
  return ranks;
}

std::vector<Place> PlacesOf(const std::vector<BoundBody>& bodies, const DeviceMesh& mesh) {
  std::vector<bool> named(mesh.num_axes(), false);
  const auto note = [&](const OnRanksOf& on) {
    for (const auto& [axis, coordinate] : on) named[axis] = true;
  };
  for (const BoundBody& body : bodies) {
    for (const OnRanksOf& on : body.on) note(on);
    for (const OpHomes& op : body.homes) {
      if (op.FromNode(HomeKind::kState)) note(RanksOfHome(op.homes[HomeKind::kState], mesh));
    }
  }
  std::vector<Place> places(1);
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (!named[a]) continue;
    std::vector<Place> finer;
    for (Place& place : places) {
      place.at.resize(mesh.num_axes(), -1);
      for (int32_t c = 0; c < mesh.size(a); ++c) {
        finer.push_back(place);
        finer.back().at[a] = c;
      }
    }
    places = std::move(finer);
  }
  return places;
}

}  // namespace plancast
