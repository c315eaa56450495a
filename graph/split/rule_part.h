#ifndef PLANCAST_GRAPH_SPLIT_RULE_PART_H_
#define PLANCAST_GRAPH_SPLIT_RULE_PART_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// What of a rule makes some of its outputs: `outputs` are positions in its list of
// outputs, ascending. Inputs that those do not need are left out; factors keep their
// names. Nothing is saved.
absl::StatusOr<OpRule> PartOf(const OpRule& rule, const std::vector<int>& outputs);

// Positions of outputs that are each the result of one matrix product with a weight
// alone: no bias, and no weight of its own for parts of the batch (experts).
std::vector<int> PlainProducts(const OpRule& rule);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_SPLIT_RULE_PART_H_
