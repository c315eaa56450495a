#include "graph/rule/recurrence.h"

namespace plancast {
namespace {

bool HasPrevious(const Expr& e) {
  bool found = false;
  VisitExpr(e, [&](const Expr& node) { found |= node.kind() == ExprKind::kPrevious; });
  return found;
}

}  // namespace

std::optional<Recurrence> AsRecurrence(const Expr& value) {
  if (value.kind() == ExprKind::kPrevious) return Recurrence{Expr::Number(1), Expr::Number(0)};
  if (!HasPrevious(value)) return Recurrence{Expr::Number(0), value};
  switch (value.kind()) {
    case ExprKind::kNegate: {
      const std::optional<Recurrence> part = AsRecurrence(value.operand(0));
      if (!part.has_value()) return std::nullopt;
      return Recurrence{Minus(part->decay), Minus(part->input)};
    }
    case ExprKind::kSum:
    case ExprKind::kDifference: {
      const std::optional<Recurrence> left = AsRecurrence(value.operand(0));
      const std::optional<Recurrence> right = AsRecurrence(value.operand(1));
      if (!left.has_value() || !right.has_value()) return std::nullopt;
      const bool sum = value.kind() == ExprKind::kSum;
      return Recurrence{sum ? Add(left->decay, right->decay) : Subtract(left->decay, right->decay),
                        sum ? Add(left->input, right->input) : Subtract(left->input, right->input)};
    }
    case ExprKind::kProduct: {
      const int with = HasPrevious(value.operand(0)) ? 0 : 1;
      if (HasPrevious(value.operand(1 - with))) return std::nullopt;
      const std::optional<Recurrence> part = AsRecurrence(value.operand(with));
      if (!part.has_value()) return std::nullopt;
      const Expr& scale = value.operand(1 - with);
      return Recurrence{Multiply(scale, part->decay), Multiply(scale, part->input)};
    }
    case ExprKind::kQuotient: {
      const std::optional<Recurrence> part = AsRecurrence(value.operand(0));
      if (!part.has_value() || HasPrevious(value.operand(1))) return std::nullopt;
      return Recurrence{Divide(part->decay, value.operand(1)),
                        Divide(part->input, value.operand(1))};
    }
    default:
      return std::nullopt;
  }
}

Expr ReplacePrevious(const Expr& value, const Expr& state) {
  switch (value.kind()) {
    case ExprKind::kPrevious:
      return state;
    case ExprKind::kFunction:
      return Expr::Apply(value.function(), ReplacePrevious(value.operand(0), state));
    case ExprKind::kNegate:
      return Expr::Negate(ReplacePrevious(value.operand(0), state));
    case ExprKind::kSum:
    case ExprKind::kDifference:
    case ExprKind::kProduct:
    case ExprKind::kQuotient:
      return Expr::Binary(value.kind(), ReplacePrevious(value.operand(0), state),
                          ReplacePrevious(value.operand(1), state));
    default:
      return value;
  }
}

}  // namespace plancast
