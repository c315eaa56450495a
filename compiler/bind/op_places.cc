#include "compiler/bind/op_places.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

// The coordinates of `ranks` along the sub-axes of an axis, and how many ranks of it have these:
// `ranks.count` where the axis is cut there.
struct Coordinates {
  OnRanksOf of;
  int64_t ranks = 1;
};
Coordinates CoordinatesOf(const OnRanks& ranks, const std::string& axis, const DeviceMesh& mesh) {
  const std::vector<int> axes = mesh.AxesOf(axis);
  Coordinates result{{}, mesh.SizeOf(axes)};
  int64_t rest = ranks.first;
  for (const int a : axes) {
    if (result.ranks == ranks.count) break;
    result.ranks /= mesh.size(a);
    if (mesh.size(a) > 1) result.of.emplace_back(a, static_cast<int32_t>(rest / result.ranks));
    rest %= result.ranks;
  }
  return result;
}

}  // namespace

absl::StatusOr<OnRanksOf> RanksOfOp(const Resolved& resolved, const std::string& path,
                                    const DeviceMesh& mesh) {
  OnRanksOf ranks;
  for (const ResolvedOn& on : resolved.on) {
    ASSIGN_OR_RETURN(const OnRanks run,
                     RanksOf(on.directive, mesh.SizeOf(mesh.AxesOf(on.directive.axis))),
                     _ << "`" << path << "`");
    const Coordinates at = CoordinatesOf(run, on.directive.axis, mesh);
    ranks.insert(ranks.end(), at.of.begin(), at.of.end());
    if (at.ranks == run.count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("`", path, "` is on ", run.count, " ranks of `", on.directive.axis,
                     "`, which other nodes or `ep`, `hsdp` cut otherwise (", mesh.DebugString(),
                     "). Take parts that nest in these."));
  }
  return ranks;
}

OnRanksOf RanksOfHome(const Home& home, const DeviceMesh& mesh) {
  if (!home.rank.has_value()) return {};
  return CoordinatesOf({*home.rank, 1}, home.axis, mesh).of;
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
