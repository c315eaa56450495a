#include "graph/rule/expr.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/enum_names.h"

namespace plancast {
namespace {

constexpr auto kFunctionNames = NamesOf<Function>("exp", "log", "sqrt", "rsqrt", "recip", "tanh",
                                                  "sigmoid", "erf", "sin", "cos", "relu", "step");

bool IsNumber(const Expr& e) { return e.kind() == ExprKind::kNumber; }

}  // namespace

absl::string_view FunctionName(Function function) { return kFunctionNames[function]; }

absl::Span<const absl::string_view> FunctionNames() { return kFunctionNames.names; }

std::optional<Function> FindFunction(absl::string_view name) { return kFunctionNames.Find(name); }

Expr Expr::Number(double value) {
  Node node;
  node.number = value;
  return Expr(std::move(node));
}

Expr Expr::Attribute(absl::string_view name) {
  Node node;
  node.kind = ExprKind::kAttribute;
  node.name = std::string(name);
  return Expr(std::move(node));
}

Expr Expr::Size(int factor) {
  Node node;
  node.kind = ExprKind::kSize;
  node.factor = factor;
  return Expr(std::move(node));
}

Expr Expr::Element(int tensor) {
  Node node;
  node.kind = ExprKind::kElement;
  node.tensor = tensor;
  return Expr(std::move(node));
}

Expr Expr::Indicator(int factor, int index_tensor) {
  Node node;
  node.kind = ExprKind::kIndicator;
  node.factor = factor;
  node.tensor = index_tensor;
  return Expr(std::move(node));
}

Expr Expr::FactorsEqual(int factor, int other) {
  Node node;
  node.kind = ExprKind::kIndicator;
  node.factor = factor;
  node.other = other;
  return Expr(std::move(node));
}

Expr Expr::Random() {
  Node node;
  node.kind = ExprKind::kRandom;
  return Expr(std::move(node));
}

Expr Expr::Previous() {
  Node node;
  node.kind = ExprKind::kPrevious;
  return Expr(std::move(node));
}

Expr Expr::Apply(Function function, Expr operand) {
  Node node;
  node.kind = ExprKind::kFunction;
  node.function = function;
  node.operands.push_back(std::move(operand));
  return Expr(std::move(node));
}

Expr Expr::Negate(Expr operand) {
  Node node;
  node.kind = ExprKind::kNegate;
  node.operands.push_back(std::move(operand));
  return Expr(std::move(node));
}

Expr Expr::Binary(ExprKind kind, Expr left, Expr right) {
  Node node;
  node.kind = kind;
  node.operands.reserve(2);
  node.operands.push_back(std::move(left));
  node.operands.push_back(std::move(right));
  return Expr(std::move(node));
}

bool operator==(const Expr& a, const Expr& b) {
  if (a.node_ == b.node_) return true;
  const Expr::Node& m = *a.node_;
  const Expr::Node& n = *b.node_;
  return m.kind == n.kind && m.function == n.function && m.tensor == n.tensor &&
         m.factor == n.factor && m.other == n.other && m.number == n.number && m.name == n.name &&
         m.operands == n.operands;
}

Expr Add(Expr a, Expr b) {
  if (a.is_number(0)) return b;
  if (b.is_number(0)) return a;
  if (IsNumber(a) && IsNumber(b)) return Expr::Number(a.number() + b.number());
  if (b.kind() == ExprKind::kNegate) return Subtract(std::move(a), b.operand(0));
  return Expr::Binary(ExprKind::kSum, std::move(a), std::move(b));
}

Expr Subtract(Expr a, Expr b) {
  if (b.is_number(0)) return a;
  if (a.is_number(0)) return Minus(std::move(b));
  if (IsNumber(a) && IsNumber(b)) return Expr::Number(a.number() - b.number());
  if (b.kind() == ExprKind::kNegate) return Add(std::move(a), b.operand(0));
  return Expr::Binary(ExprKind::kDifference, std::move(a), std::move(b));
}

Expr Multiply(Expr a, Expr b) {
  if (a.is_number(0) || b.is_number(0)) return Expr::Number(0);
  if (a.is_number(1)) return b;
  if (b.is_number(1)) return a;
  if (IsNumber(a) && IsNumber(b)) return Expr::Number(a.number() * b.number());
  if (a.is_number(-1)) return Minus(std::move(b));
  if (b.is_number(-1)) return Minus(std::move(a));
  if (a.kind() == ExprKind::kNegate) return Minus(Multiply(a.operand(0), std::move(b)));
  if (b.kind() == ExprKind::kNegate) return Minus(Multiply(std::move(a), b.operand(0)));
  return Expr::Binary(ExprKind::kProduct, std::move(a), std::move(b));
}

Expr Divide(Expr a, Expr b) {
  if (a.is_number(0) || b.is_number(1)) return a;
  if (a.kind() == ExprKind::kNegate) return Minus(Divide(a.operand(0), std::move(b)));
  return Expr::Binary(ExprKind::kQuotient, std::move(a), std::move(b));
}

Expr Minus(Expr a) {
  if (IsNumber(a)) return Expr::Number(a.number() == 0 ? 0 : -a.number());
  if (a.kind() == ExprKind::kNegate) return a.operand(0);
  return Expr::Negate(std::move(a));
}

void VisitExpr(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  visit(expr);
  for (int i = 0; i < expr.num_operands(); ++i) VisitExpr(expr.operand(i), visit);
}

std::vector<int> TensorsOf(const Expr& expr) {
  std::vector<int> tensors;
  VisitExpr(expr, [&](const Expr& e) {
    if (e.kind() != ExprKind::kElement && e.kind() != ExprKind::kIndicator) return;
    if (e.tensor() < 0) return;
    if (std::find(tensors.begin(), tensors.end(), e.tensor()) == tensors.end()) {
      tensors.push_back(e.tensor());
    }
  });
  return tensors;
}

Expr RenameTensors(const Expr& expr, const std::vector<int>& map) {
  switch (expr.kind()) {
    case ExprKind::kElement:
      return Expr::Element(map[expr.tensor()]);
    case ExprKind::kIndicator:
      return expr.tensor() < 0 ? expr : Expr::Indicator(expr.factor(), map[expr.tensor()]);
    case ExprKind::kFunction:
      return Expr::Apply(expr.function(), RenameTensors(expr.operand(0), map));
    case ExprKind::kNegate:
      return Expr::Negate(RenameTensors(expr.operand(0), map));
    case ExprKind::kSum:
    case ExprKind::kDifference:
    case ExprKind::kProduct:
    case ExprKind::kQuotient:
      return Expr::Binary(expr.kind(), RenameTensors(expr.operand(0), map),
                          RenameTensors(expr.operand(1), map));
    default:
      return expr;
  }
}

}  // namespace plancast
