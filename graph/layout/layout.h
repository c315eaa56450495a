#ifndef PLANCAST_GRAPH_LAYOUT_LAYOUT_H_
#define PLANCAST_GRAPH_LAYOUT_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/device_mesh.h"

namespace plancast {

enum class Reduction : uint8_t { kSum, kMax };

// How one tensor dim is cut over one mesh axis.
enum class ShardPattern : uint8_t { kBlock, kMirrored };

// How many neighbouring elements a block holds besides its own, as far as there
// are any: what windows and other index maps read across its borders.
struct Halo {
  int32_t before = 0, after = 0;

  bool empty() const { return before == 0 && after == 0; }
  friend bool operator==(Halo a, Halo b) { return a.before == b.before && a.after == b.after; }
};

// What a tensor does along one mesh axis: every coordinate holds all of it,
// its own part of dim `dim`, a partial value that still has to be reduced, or coordinate
// `at` alone holds it.
struct Placement {
  enum class Kind : uint8_t { kReplicate, kShard, kPartial, kOn };
  Kind kind = Kind::kReplicate;
  int8_t dim = -1;
  ShardPattern pattern = ShardPattern::kBlock;
  Reduction reduction = Reduction::kSum;
  Halo halo;        // of a block; one dim has one halo, on all axes that cut it
  int32_t at = -1;  // of kOn

  static Placement Replicate() { return {}; }
  static Placement Shard(int dim, ShardPattern pattern = ShardPattern::kBlock, Halo halo = {}) {
    return {Kind::kShard, static_cast<int8_t>(dim), pattern, Reduction::kSum, halo, -1};
  }
  static Placement Partial(Reduction reduction = Reduction::kSum) {
    return {Kind::kPartial, -1, ShardPattern::kBlock, reduction, {}, -1};
  }
  static Placement On(int64_t at) {
    return {Kind::kOn, -1, ShardPattern::kBlock, Reduction::kSum, {}, static_cast<int32_t>(at)};
  }
  bool is_replicate() const { return kind == Kind::kReplicate; }
  bool is_shard() const { return kind == Kind::kShard; }
  bool is_partial() const { return kind == Kind::kPartial; }
  bool is_on() const { return kind == Kind::kOn; }
  // Whether no other coordinate has the same: each its own part or summand, or one all.
  bool has_no_copies() const { return is_shard() || is_partial() || is_on(); }

  friend bool operator==(const Placement& a, const Placement& b) {
    return a.kind == b.kind && a.dim == b.dim && a.pattern == b.pattern &&
           a.reduction == b.reduction && a.halo == b.halo && a.at == b.at;
  }
  friend bool operator!=(const Placement& a, const Placement& b) { return !(a == b); }
};

// One placement per mesh axis, in the mesh's order. If several axes shard one
// dim, the outer (earlier) axis is the major one.
struct Layout {
  std::vector<Placement> placements;

  static Layout Replicated(int num_axes) { return {std::vector<Placement>(num_axes)}; }

  bool has_partial() const;
  bool has_halo() const;
  // Whether the device at `device` of the mesh holds something of it.
  bool IsOn(const DeviceMesh& mesh, int64_t device) const;
  Layout WithoutHalos() const;
  bool has_on() const;
  Halo HaloOf(int dim) const;
  // Product of the sizes of the axes that shard `dim` (-1: any dim).
  int64_t ShardCount(const DeviceMesh& mesh, int dim = -1) const;
  // The largest shard's shape; sizes that do not divide are rounded up.
  std::vector<int64_t> LocalShape(const DeviceMesh& mesh, absl::Span<const int64_t> shape) const;
  // Elements of that shard, exact up to 2^53.
  double LocalElements(const DeviceMesh& mesh, absl::Span<const int64_t> shape) const;

  absl::Status Verify(const DeviceMesh& mesh, int num_dims) const;
  // `[dp: Shard(0), tp: Partial(sum)]`, axes that replicate left out; `[]`.
  std::string DebugString(const DeviceMesh& mesh) const;

  friend bool operator==(const Layout& a, const Layout& b) { return a.placements == b.placements; }
  friend bool operator!=(const Layout& a, const Layout& b) { return !(a == b); }
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_LAYOUT_H_
