#ifndef PLANCAST_GRAPH_INDEX_RANGES_H_
#define PLANCAST_GRAPH_INDEX_RANGES_H_

#include <cstdint>
#include <vector>

#include "graph/domain.h"
#include "graph/op_rule.h"

namespace plancast {

// Interval analysis of one statement: which indices of every factor appear at
// points where factor `fixed` is in `range`, by its index maps. The result has
// a range for every factor of the rule, all of it for those that do not depend
// on `fixed`; it is empty if no point is left.
std::vector<IndexRange> RangesWhere(const Statement& statement, int fixed, IndexRange range,
                                    const std::vector<int64_t>& extents);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_INDEX_RANGES_H_
