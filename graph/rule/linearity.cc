#include "graph/rule/linearity.h"

namespace plancast {
namespace {

// Collects the tensors of a product; false if it holds anything else than
// elements and scalars.
bool CollectProduct(const Expr& e, std::vector<int>* tensors) {
  switch (e.kind()) {
    case ExprKind::kElement:
      tensors->push_back(e.tensor());
      return true;
    case ExprKind::kNumber:
    case ExprKind::kAttribute:
    case ExprKind::kSize:
      return true;
    case ExprKind::kNegate:
      return CollectProduct(e.operand(0), tensors);
    case ExprKind::kProduct:
      return CollectProduct(e.operand(0), tensors) && CollectProduct(e.operand(1), tensors);
    case ExprKind::kQuotient: {
      std::vector<int> below;
      return CollectProduct(e.operand(0), tensors) && CollectProduct(e.operand(1), &below) &&
             below.empty();
    }
    default:
      return false;
  }
}

}  // namespace

Dependence DependenceOn(const Expr& e, const std::vector<bool>& marked) {
  switch (e.kind()) {
    case ExprKind::kElement:
      return marked[e.tensor()] ? Dependence::kLinear : Dependence::kNone;
    case ExprKind::kPrevious:
      return Dependence::kLinear;
    case ExprKind::kIndicator:
      return e.tensor() >= 0 && marked[e.tensor()] ? Dependence::kOther : Dependence::kNone;
    case ExprKind::kFunction:
      return DependenceOn(e.operand(0), marked) == Dependence::kNone ? Dependence::kNone
                                                                     : Dependence::kOther;
    case ExprKind::kNegate:
      return DependenceOn(e.operand(0), marked);
    case ExprKind::kSum:
    case ExprKind::kDifference: {
      const Dependence left = DependenceOn(e.operand(0), marked);
      return left == DependenceOn(e.operand(1), marked) ? left : Dependence::kOther;
    }
    case ExprKind::kProduct:
    case ExprKind::kQuotient: {
      const Dependence left = DependenceOn(e.operand(0), marked);
      const Dependence right = DependenceOn(e.operand(1), marked);
      if (right == Dependence::kNone) return left;
      if (left == Dependence::kNone && e.kind() == ExprKind::kProduct) return right;
      return Dependence::kOther;
    }
    default:
      return Dependence::kNone;
  }
}

bool IsLookup(const Expr& e, int factor) {
  switch (e.kind()) {
    case ExprKind::kIndicator:
      return e.factor() == factor;
    case ExprKind::kNegate:
    case ExprKind::kQuotient:
      return IsLookup(e.operand(0), factor);
    case ExprKind::kProduct:
      return IsLookup(e.operand(0), factor) || IsLookup(e.operand(1), factor);
    case ExprKind::kSum:
    case ExprKind::kDifference:
      return IsLookup(e.operand(0), factor) && IsLookup(e.operand(1), factor);
    default:
      return false;
  }
}

std::vector<int> ProductOfTwo(const Expr& expr) {
  std::vector<int> tensors;
  if (!CollectProduct(expr, &tensors) || tensors.size() != 2) return {};
  return tensors;
}

}  // namespace plancast
