#ifndef PLANCAST_GRAPH_SPLIT_INDEX_RANGES_H_
#define PLANCAST_GRAPH_SPLIT_INDEX_RANGES_H_

#include <cstdint>
#include <vector>

#include "graph/layout/domain.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// Interval analysis of one statement: which indices of every factor appear at
// points where some factors are in given ranges, by its index maps. `ranges` has
// one for every factor of the rule, all of it where nothing is given; the result
// is as long, and empty if no point is left.
std::vector<IndexRange> NarrowRanges(const Statement& statement, std::vector<IndexRange> ranges,
                                     const std::vector<int64_t>& extents);
// The same where only factor `fixed` is in `range`.
std::vector<IndexRange> RangesWhere(const Statement& statement, int fixed, IndexRange range,
                                    const std::vector<int64_t>& extents);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_SPLIT_INDEX_RANGES_H_
