#ifndef PLANCAST_GRAPH_RULE_RECURRENCE_H_
#define PLANCAST_GRAPH_RULE_RECURRENCE_H_

#include <optional>

#include "graph/rule/expr.h"

namespace plancast {

// A step of a linear recurrence: state = decay * previous + input. Steps combine
// associatively, (a2, u2) after (a1, u1) being (a2 a1, a2 u1 + u2): that is why a
// recurrence can be cut along its factor (Blelloch 1990; Martin and Cundy 2018).
struct Recurrence {
  Expr decay, input;
};

// The two parts of `value`; nothing if it is not linear in `previous`.
std::optional<Recurrence> AsRecurrence(const Expr& value);

// `value` with `state` in the place of `previous`.
Expr ReplacePrevious(const Expr& value, const Expr& state);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_RECURRENCE_H_
