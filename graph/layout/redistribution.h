#ifndef PLANCAST_GRAPH_LAYOUT_REDISTRIBUTION_H_
#define PLANCAST_GRAPH_LAYOUT_REDISTRIBUTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cluster/device_mesh.h"
#include "graph/layout/domain.h"
#include "graph/layout/layout.h"

namespace plancast {

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
