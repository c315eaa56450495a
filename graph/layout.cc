#include "graph/layout.h"

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
    case Placement::Kind::kShard:
      break;
  }
  const char* pattern = p.pattern == ShardPattern::kBlock      ? ")"
                        : p.pattern == ShardPattern::kMirrored ? ", mirrored)"
                                                               : ", padded)";
  return absl::StrCat("Shard(", static_cast<int>(p.dim), pattern);
}

}  // namespace

bool Layout::has_partial() const {
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement& p) { return p.is_partial(); });
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
    const bool mirrored =
        std::any_of(placements.begin(), placements.end(), [&](const Placement& p) {
          return p.is_shard() && p.dim == static_cast<int>(d) &&
                 p.pattern == ShardPattern::kMirrored;
        });
    // A mirrored shard is two chunks, each rounded up.
    local[d] =
        mirrored ? std::min(local[d], 2 * CeilDiv(local[d], 2 * count)) : CeilDiv(local[d], count);
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
    if (!p.is_shard()) continue;
    if (p.dim < 0 || p.dim >= num_dims) {
      return absl::InvalidArgumentError(absl::StrCat("axis `", mesh.axis(a).name, "` shards dim ",
                                                     static_cast<int>(p.dim), " of a tensor with ",
                                                     num_dims, " dims."));
    }
    for (int b = 0; b < a; ++b) {
      const Placement& other = placements[b];
      if (!other.is_shard() || other.dim != p.dim || other.pattern == p.pattern) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "axes `", mesh.axis(b).name, "` and `", mesh.axis(a).name, "` shard dim ",
          static_cast<int>(p.dim), " in different patterns; one dim has one pattern."));
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
