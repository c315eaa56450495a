#ifndef PLANCAST_GRAPH_RULE_RULE_PARSER_H_
#define PLANCAST_GRAPH_RULE_RULE_PARSER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// Values for the `let` attributes of one rule of a text, and `rank`: how many
// dims its `...` stands for.
struct RuleBindings {
  std::string rule;
  absl::btree_map<std::string, int64_t> values;
};

// All rules of a text, in order. Beyond the form shown at OpRule:
//  - `size(h)` is the global extent of factor h; a bare name (`eps`) is a
//    scalar attribute of the call;
//  - a tensor without dims is written `loss[]`;
//  - conditions are joined by `and`; their right side is a sum of factors times
//    numbers, sizes and `let` attributes: `where p == stride * i + k - pad`;
//  - an index in brackets is a condition on the dim's factor: `x[b,i+k]` is `x[b,p]`
//    with `p == i + k` (p is called `x.1` unless x has its dims already);
//  - `let stride = 1, stride_w = stride` declares whole-number attributes with
//    defaults;
//  - `...` stands for any number of dims, factors `_1`, `_2`, ...;
//  - `factors b, s, h` as first item fixes the order of the factors, which is
//    that of first appearance otherwise.
// Errors begin with `line L, column C:` and quote the word.
absl::StatusOr<std::vector<OpRule>> ParseRules(absl::string_view text,
                                               const RuleBindings& bindings = {});

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_RULE_PARSER_H_
