#ifndef PLANCAST_GRAPH_RULE_RULE_VERIFIER_H_
#define PLANCAST_GRAPH_RULE_RULE_VERIFIER_H_

#include <string>

#include "absl/status/status.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// Invariants of a rule, each with its own message:
//  - every index is in range; names are unique (VerifyRuleIndices);
//  - a tensor's dims are distinct factors;
//  - inputs are read, and only read; every other tensor is written by exactly one
//    statement, before it is read;
//  - `=` has every factor of its value on the left but those that an index map
//    fixes, `+=` and `max=` lack some;
//  - indicators compare with i64 tensors;
//  - a statement maps a factor once, and not to itself.
absl::Status VerifyRuleIndices(const OpRule& rule);
absl::Status VerifyRule(const OpRule& rule);

// `x[b,s,h]` and a whole statement, as in the text form.
std::string ElementToString(const OpRule& rule, int tensor);
std::string StatementToString(const OpRule& rule, const Statement& statement);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_RULE_VERIFIER_H_
