#ifndef PLANCAST_GRAPH_RULE_JOIN_RULES_H_
#define PLANCAST_GRAPH_RULE_JOIN_RULES_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// Two rules as one: `second` reads results of `first`.
struct RuleJoin {
  // Output of the first (its number) and the input of the second that it is.
  std::vector<std::pair<int, int>> links;
  // Outputs of the first that others read too; those that are linked and not here are only made as
  // far as the second reads them.
  std::vector<int> kept;
};

// The rule of both, statements in order. Its inputs are those of the first, then those of the
// second that are not linked; its outputs those of the first that are kept or not linked, then
// those of the second. A dim that is read at several positions is computed at all of them, so that
// a stencil of a stencil reads a wider border once and computes the border between them twice.
// Errors: a result that the second reads along two lists of dims.
absl::StatusOr<OpRule> JoinRules(const OpRule& first, const OpRule& second, const RuleJoin& join);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_JOIN_RULES_H_
