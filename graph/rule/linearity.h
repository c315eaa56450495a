#ifndef PLANCAST_GRAPH_RULE_LINEARITY_H_
#define PLANCAST_GRAPH_RULE_LINEARITY_H_

#include <cstdint>
#include <vector>

#include "graph/rule/expr.h"

namespace plancast {

// How an expression depends on a marked set of tensors: not at all, as a sum
// of terms that each have exactly one of them as a factor, or otherwise. The
// state before of a recurrence counts as marked: it carries what is.
enum class Dependence : uint8_t { kNone, kLinear, kOther };
Dependence DependenceOn(const Expr& expr, const std::vector<bool>& marked);

// Every term of `expr` has the factor [f == ...], so that a point of the other
// factors meets one value of f only.
bool IsLookup(const Expr& expr, int factor);

// The two tensors of a product `a * b`, possibly times scalars; empty for
// anything else.
std::vector<int> ProductOfTwo(const Expr& expr);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_LINEARITY_H_
