#ifndef PLANCAST_GRAPH_LAYOUT_DOMAIN_H_
#define PLANCAST_GRAPH_LAYOUT_DOMAIN_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "graph/layout/layout.h"
#include "graph/rule/expr.h"

namespace plancast {

// Indices [begin, end) of a factor or dim.
struct IndexRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end > begin ? end - begin : 0; }
};
// Ascending, disjoint.
using IndexSet = absl::InlinedVector<IndexRange, 2>;

int64_t CountOf(const IndexSet& set);
int64_t CountCommon(const IndexSet& a, const IndexSet& b);

// Which of `extent` indices part `part` of `parts` holds. Block and padded:
// consecutive chunks of the rounded-up size, the last ones may be short.
// Mirrored: the extent is cut into 2 * parts chunks; part i gets chunks i and
// 2 * parts - 1 - i, which evens out causal work.
IndexSet ShardIndices(int64_t extent, int64_t parts, int64_t part, ShardPattern pattern);

// A block and its halo, inside [0, extent). An empty block has its neighbours'
// elements next to where it is.
IndexSet Widened(IndexSet block, Halo halo, int64_t extent);

// Lattice points of the box `factors` that meet all conditions; `sets` is
// indexed by factor; size(f) in a condition is that of sets[f]. Closed form for a
// condition on a pair that shares no factor with another one; else all factors
// that conditions connect are enumerated but one.
double CountLatticePoints(const std::vector<int>& factors, const std::vector<Condition>& where,
                          const std::vector<IndexSet>& sets);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_DOMAIN_H_
