#ifndef PLANCAST_GRAPH_RULE_DERIVATIVE_H_
#define PLANCAST_GRAPH_RULE_DERIVATIVE_H_

#include <functional>
#include <optional>
#include <vector>

#include "graph/rule/expr.h"

namespace plancast {

// Reverse mode on one expression: for every place where `value` reads an
// active tensor, in order, calls `add(tensor, gradient)` with the share of the
// gradient that flows to it when that of the whole is `upstream`. `known`, if
// there, is an element that holds the value already (as autograd uses saved
// results: exp' = result).
void BackPropagate(const Expr& value, const Expr& upstream, const std::optional<Expr>& known,
                   const std::vector<bool>& active,
                   const std::function<void(int tensor, const Expr& gradient)>& add);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_DERIVATIVE_H_
