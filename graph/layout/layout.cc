#include "graph/layout/layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/int128.h"

namespace plancast {
namespace {

std::string PlacementString(const Placement& p) {
  switch (p.kind) {
    case Placement::Kind::kReplicate:
      return "Replicate";
    case Placement::Kind::kPartial:
      return p.reduction == Reduction::kSum ? "Partial(sum)" : "Partial(max)";
    case Placement::Kind::kOn:
      return absl::StrCat("On(", p.at, ")");
    case Placement::Kind::kShard:
      break;
  }
  const char* pattern = p.pattern == ShardPattern::kBlock      ? ")"
                        : p.pattern == ShardPattern::kMirrored ? ", mirrored)"
                                                               : ", padded)";
  if (!p.halo.empty()) {
    return absl::StrCat("Shard(", static_cast<int>(p.dim), ", halo ", p.halo.before, "+",
                        p.halo.after, ")");
  }
  return absl::StrCat("Shard(", static_cast<int>(p.dim), pattern);
}

// Blocks at the ends have neighbours on one side only.
int64_t LargestWithHalo(int64_t extent, int64_t count, Halo halo) {
  const int64_t size = CeilDiv(extent, count);
  int64_t largest = 0;
  for (int64_t begin = 0; begin < extent; begin += size) {
    const int64_t end = std::min(extent, begin + size);
    largest = std::max(
        largest, std::min(extent, end + halo.after) - std::max<int64_t>(0, begin - halo.before));
  }
  return largest;
}

}  // namespace

bool Layout::has_partial() const {
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement& p) { return p.is_partial(); });
}

bool Layout::has_halo() const {
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement& p) { return !p.halo.empty(); });
}

bool Layout::has_on() const {
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement& p) { return p.is_on(); });
}

bool Layout::IsOn(const DeviceMesh& mesh, int64_t device) const {
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (placements[a].is_on() && mesh.Coordinate(device, a) != placements[a].at) return false;
  }
  return true;
}

Layout Layout::WithoutHalos() const {
  Layout plain = *this;
  for (Placement& p : plain.placements) p.halo = {};
  return plain;
}

Halo Layout::HaloOf(int dim) const {
  for (const Placement& p : placements) {
    if (p.is_shard() && p.dim == dim) return p.halo;
  }
  return {};
}

int64_t Layout::ShardCount(const DeviceMesh& mesh, int dim) const {
  int64_t count = 1;
  for (size_t a = 0; a < placements.size(); ++a) {
    const Placement& p = placements[a];
    if (p.is_shard() && (dim == -1 || p.dim == dim)) count *= mesh.size(static_cast<int>(a));
  }
  return count;
}

std::vector<int64_t> Layout::LocalShape(const DeviceMesh& mesh,
                                        absl::Span<const int64_t> shape) const {
  std::vector<int64_t> local(shape.begin(), shape.end());
  for (size_t d = 0; d < local.size(); ++d) {
    const int64_t count = ShardCount(mesh, static_cast<int>(d));
    if (count == 1) continue;
    const Halo halo = HaloOf(static_cast<int>(d));
    const bool mirrored =
        std::any_of(placements.begin(), placements.end(), [&](const Placement& p) {
          return p.is_shard() && p.dim == static_cast<int>(d) &&
                 p.pattern == ShardPattern::kMirrored;
        });
    // A mirrored shard is two chunks, each rounded up.
    local[d] = mirrored       ? std::min(local[d], 2 * CeilDiv(local[d], 2 * count))
               : halo.empty() ? CeilDiv(local[d], count)
                              : LargestWithHalo(local[d], count, halo);
  }
  return local;
}

double Layout::LocalElements(const DeviceMesh& mesh, absl::Span<const int64_t> shape) const {
  double elements = 1;
  for (int64_t size : LocalShape(mesh, shape)) elements *= static_cast<double>(size);
  return elements;
}

absl::Status Layout::Verify(const DeviceMesh& mesh, int num_dims) const {
  if (static_cast<int>(placements.size()) != mesh.num_axes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a layout of ", placements.size(), " placements does not fit a mesh of ",
                     mesh.num_axes(), " axes (", mesh.DebugString(), ")."));
  }
  for (int a = 0; a < mesh.num_axes(); ++a) {
    const Placement& p = placements[a];
    if (p.is_on() && (p.at < 0 || p.at >= mesh.size(a))) {
      return absl::InvalidArgumentError(absl::StrCat("a tensor is on coordinate ", p.at,
                                                     " of axis `", mesh.axis(a).name,
                                                     "`, which has ", mesh.size(a), "."));
    }
    if (!p.is_shard()) continue;
    if (p.dim < 0 || p.dim >= num_dims) {
      return absl::InvalidArgumentError(absl::StrCat("axis `", mesh.axis(a).name, "` shards dim ",
                                                     static_cast<int>(p.dim), " of a tensor with ",
                                                     num_dims, " dims."));
    }
    for (int b = 0; b < a; ++b) {
      const Placement& other = placements[b];
      if (!other.is_shard() || other.dim != p.dim) continue;
      if (other.pattern == p.pattern && other.halo == p.halo) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "axes `", mesh.axis(b).name, "` and `", mesh.axis(a).name, "` shard dim ",
          static_cast<int>(p.dim), " in different patterns; one dim has one pattern and halo."));
    }
    if (!p.halo.empty() &&
        (p.pattern != ShardPattern::kBlock || p.halo.before < 0 || p.halo.after < 0)) {
      return absl::InvalidArgumentError(absl::StrCat("axis `", mesh.axis(a).name, "` shards dim ",
                                                     static_cast<int>(p.dim),
                                                     " with a halo that only blocks have."));
    }
  }
  return absl::OkStatus();
}

std::string Layout::DebugString(const DeviceMesh& mesh) const {
  std::vector<std::string> parts;
  for (size_t a = 0; a < placements.size(); ++a) {
    if (placements[a].is_replicate()) continue;
    parts.push_back(
        absl::StrCat(mesh.axis(static_cast<int>(a)).name, ": ", PlacementString(placements[a])));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

}  // namespace plancast
