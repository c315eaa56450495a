#include "graph/rule/derivative.h"

#include <utility>

namespace plancast {
namespace {

bool IsActive(const Expr& e, const std::vector<bool>& active) {
  if (e.kind() == ExprKind::kElement) return active[e.tensor()];
  for (int i = 0; i < e.num_operands(); ++i) {
    if (IsActive(e.operand(i), active)) return true;
  }
  return false;
}

// f'(x), where y = f(x).
Expr FunctionDerivative(Function function, const Expr& x, const Expr& y) {
  const Expr one = Expr::Number(1);
  switch (function) {
    case Function::kExp:
      return y;
    case Function::kLog:
      return Divide(one, x);
    case Function::kSqrt:
      return Divide(Expr::Number(0.5), y);
    case Function::kRsqrt:
      return Multiply(Multiply(Multiply(Expr::Number(-0.5), y), y), y);
    case Function::kRecip:
      return Minus(Multiply(y, y));
    case Function::kTanh:
      return Subtract(one, Multiply(y, y));
    case Function::kSigmoid:
      return Multiply(y, Subtract(one, y));
    case Function::kErf:  // 2 / sqrt(pi) exp(-x^2)
      return Multiply(Expr::Number(1.1283791670955126),
                      Expr::Apply(Function::kExp, Minus(Multiply(x, x))));
    case Function::kSin:
      return Expr::Apply(Function::kCos, x);
    case Function::kCos:
      return Minus(Expr::Apply(Function::kSin, x));
    case Function::kRelu:  // the sign of the result is that of the argument
      return Expr::Apply(Function::kStep, y);
    case Function::kStep:
      return Expr::Number(0);
  }
  return Expr::Number(0);
}

}  // namespace

void BackPropagate(const Expr& value, const Expr& upstream, const std::optional<Expr>& known,
                   const std::vector<bool>& active,
                   const std::function<void(int, const Expr&)>& add) {
  if (upstream.is_number(0)) return;
  auto into = [&](int operand, const Expr& gradient) {
    BackPropagate(value.operand(operand), gradient, std::nullopt, active, add);
  };
  auto is_active = [&](int operand) { return IsActive(value.operand(operand), active); };
  switch (value.kind()) {
    case ExprKind::kElement:
      if (active[value.tensor()]) add(value.tensor(), upstream);
      return;
    case ExprKind::kNegate:
      if (is_active(0)) into(0, Minus(upstream));
      return;
    case ExprKind::kSum:
    case ExprKind::kDifference:
      if (is_active(0)) into(0, upstream);
      if (is_active(1)) into(1, value.kind() == ExprKind::kSum ? upstream : Minus(upstream));
      return;
    case ExprKind::kProduct:
      if (is_active(0)) into(0, Multiply(upstream, value.operand(1)));
      if (is_active(1)) into(1, Multiply(upstream, value.operand(0)));
      return;
    case ExprKind::kQuotient:
      if (is_active(0)) into(0, Divide(upstream, value.operand(1)));
      if (is_active(1)) {
        into(1, Minus(Divide(Multiply(upstream, known.value_or(value)), value.operand(1))));
      }
      return;
    case ExprKind::kFunction:
      if (!is_active(0)) return;
      into(0, Multiply(upstream, FunctionDerivative(value.function(), value.operand(0),
                                                    known.value_or(value))));
      return;
    default:
      return;
  }
}

}  // namespace plancast
