#ifndef PLANCAST_GRAPH_RULE_PARSER_H_
#define PLANCAST_GRAPH_RULE_PARSER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/op_rule.h"

namespace plancast {

// All rules of a text, in order. Beyond the form shown at OpRule:
//  - `size(h)` is the global extent of factor h; a bare name (`eps`) is a
//    scalar attribute of the call;
//  - a tensor without dims is written `loss[]`;
//  - conditions are joined by `and`, and may have an offset: `where t <= s + 2`;
//  - `factors b, s, h` as first item fixes the order of the factors, which is
//    that of first appearance otherwise.
// Errors begin with `line L, column C:` and quote the word.
absl::StatusOr<std::vector<OpRule>> ParseRules(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_PARSER_H_
