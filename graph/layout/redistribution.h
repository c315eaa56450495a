#ifndef PLANCAST_GRAPH_LAYOUT_REDISTRIBUTION_H_
#define PLANCAST_GRAPH_LAYOUT_REDISTRIBUTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cluster/device_mesh.h"
#include "graph/layout/domain.h"
#include "graph/layout/layout.h"

namespace plancast {

// How a layout cuts one dim: into `parts` over `axes`, outermost first.
struct DimCut {
  int64_t parts = 1;
  std::vector<int> axes;
  ShardPattern pattern = ShardPattern::kBlock;
  Halo halo;

  int64_t PartOf(const DeviceMesh& mesh, int64_t device) const;
  // The indices of [0, extent) that part `part` holds.
  IndexSet Indices(int64_t extent, int64_t part) const;
};
std::vector<DimCut> CutsOf(const DeviceMesh& mesh, const Layout& layout, size_t num_dims);

// The indices of each dim of `shape` that a device holds under `layout`.
std::vector<IndexSet> LocalIndices(const DeviceMesh& mesh, absl::Span<const int64_t> shape,
                                   const Layout& layout, int64_t device);

// A direct exchange between two layouts that are partial on the same axes:
// every device gets exactly what it lacks.
struct Exchange {
  std::vector<int> axes;  // between whose coordinates data moves
  int64_t received = 0;   // elements that the busiest device lacks
  // Every device's new part is some device's old part, or what it lacks are the
  // halos of its own.
  bool permutation = false;
};
Exchange PlanExchange(const DeviceMesh& mesh, absl::Span<const int64_t> shape, const Layout& source,
                      const Layout& target);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_REDISTRIBUTION_H_
