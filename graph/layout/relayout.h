#ifndef PLANCAST_GRAPH_LAYOUT_RELAYOUT_H_
#define PLANCAST_GRAPH_LAYOUT_RELAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/device_mesh.h"
#include "graph/collective_kind.h"
#include "graph/layout/layout.h"

namespace plancast {

// One step of a relayout. Local steps (`is_collective` false) move no bytes:
// slicing a replica, or zeroing all but one replica to make it partial.
struct RelayoutStep {
  bool is_collective = false;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Reduction reduction = Reduction::kSum;
  std::vector<int> axes;  // mesh axes it runs over, outermost first
  int64_t elements = 0;   // in the unit of CollectiveKind, times element size = bytes
  int64_t received = 0;   // elements the busiest device receives at least, or sends from a root
  Layout after;
};

struct Relayout {
  Layout source, target;
  std::vector<RelayoutStep> steps;

  // Elements the busiest device receives, all steps.
  int64_t received() const;
  // One line a step: `all_gather(tp) 1048576`.
  std::string DebugString(const DeviceMesh& mesh) const;
};

// The steps that carry a tensor of `shape` from `source` to `target`, moving
// the fewest bytes; adjacent sub-axes or axes with the same need share one
// collective. Examples on one axis: Shard->Replicate all_gather,
// Partial->Replicate all_reduce, Partial->Shard reduce_scatter, Shard->On gather,
// On->Shard scatter, On->Replicate broadcast, Partial->On reduce, On->On a permute,
// Shard(a)->Shard(b) all_to_all, Replicate->Shard a local slice, Shard->Shard
// with a halo an exchange with the neighbours (a permute of what the busiest
// device receives).
//
// Without partial placements the busiest device receives exactly the elements
// of its new part that it lacks (shards that divide evenly), which no schedule
// can undercut: what the standard collectives cannot reach, such as undoing an
// outer axis of a dim that an inner one shards too, is a direct exchange, given
// as an all_to_all or, where every new part is somebody's old one, a permute.
// A reduction over n copies costs (n - 1) / n of the local elements if it ends
// in shards and twice that if it ends in copies, as a ring does; among orders
// of several steps the cheapest is taken.
absl::StatusOr<Relayout> PlanRelayout(const DeviceMesh& mesh, absl::Span<const int64_t> shape,
                                      const Layout& source, const Layout& target);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_RELAYOUT_H_
