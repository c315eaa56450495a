#include "compiler/lower/kernels/eager.h"

#include <algorithm>
#include <set>

#include "graph/split/op_split.h"

namespace plancast {
namespace {

// An operand in memory: nothing for scalars, indicators and fresh randomness.
struct Operand {
  double elements = 0;
  double bytes = 0;       // of one element
  int tensor = -1;        // if it is a tensor as such
  std::set<int> factors;  // what it is over

  double total() const { return elements * bytes; }
};

class StatementWalk {
 public:
  StatementWalk(const OpRule& rule, const std::vector<int64_t>& extents, double points,
                const std::function<double(DType)>& element_bytes, EagerTraffic* traffic)
      : rule_(rule),
        extents_(extents),
        points_(points),
        element_bytes_(element_bytes),
        traffic_(*traffic) {}

  void Run(const Statement& statement) {
    target_bytes_ = element_bytes_(rule_.tensors()[statement.target].dtype);
    const Operand value = Visit(statement.value);
    if (statement.reduced.empty()) {
      // The last operation wrote its result in the target's type already; a
      // bare tensor is copied or converted.
      if (value.tensor >= 0) Launch({value}, Elements(statement.target), target_bytes_);
      return;
    }
    Launch({value}, Elements(statement.target), target_bytes_);
  }

 private:
  template <typename Factors>
  double Points(const Factors& factors) const {
    double points = 1;
    for (int f : factors) points *= static_cast<double>(extents_[f]);
    return points;
  }
  double Elements(int tensor) const { return Points(rule_.tensors()[tensor].factors); }

  Operand Visit(const Expr& e) {
    switch (e.kind()) {
      case ExprKind::kNumber:
      case ExprKind::kAttribute:
      case ExprKind::kSize:
      case ExprKind::kIndicator:
      case ExprKind::kRandom:
        return {};
      case ExprKind::kElement: {
        // A gather selects at most one element a point.
        const RuleTensor& tensor = rule_.tensors()[e.tensor()];
        return {std::min(Elements(e.tensor()), points_), element_bytes_(tensor.dtype), e.tensor(),
                std::set<int>(tensor.factors.begin(), tensor.factors.end())};
      }
      default:
        break;
    }
    std::vector<Operand> operands;
    bool selects = false;
    for (int i = 0; i < e.num_operands(); ++i) {
      selects |= e.operand(i).kind() == ExprKind::kIndicator;
      const Operand operand = Visit(e.operand(i));
      const bool twice = operand.tensor >= 0 && !operands.empty() &&
                         operands[0].tensor == operand.tensor;  // x * x reads x once
      if (operand.elements > 0 && !twice) operands.push_back(operand);
    }
    if (operands.empty()) return {};
    if (selects && operands.size() == 1) return operands[0];
    Operand result;
    result.bytes = target_bytes_;
    for (const Operand& operand : operands) {
      result.bytes = std::max(result.bytes, operand.bytes);
      result.factors.insert(operand.factors.begin(), operand.factors.end());
    }
    // Operands are broadcast to each other.
    result.elements = std::min(Points(result.factors), points_);
    for (const Operand& operand : operands) {
      result.elements = std::max(result.elements, operand.elements);
    }
    Launch(operands, result.elements, result.bytes);
    return result;
  }

  void Launch(const std::vector<Operand>& operands, double elements, double bytes) {
    for (const Operand& operand : operands) traffic_.read_bytes += operand.total();
    traffic_.write_bytes += elements * bytes;
    ++traffic_.kernels;
  }

  const OpRule& rule_;
  const std::vector<int64_t>& extents_;
  const double points_;
  const std::function<double(DType)>& element_bytes_;
  EagerTraffic& traffic_;
  double target_bytes_ = 0;
};

}  // namespace

EagerTraffic EagerTrafficOf(const OpRule& rule, const std::vector<int64_t>& extents, int begin,
                            int end, const std::function<double(DType)>& element_bytes) {
  EagerTraffic traffic;
  for (int s = begin; s < end; ++s) {
    const Statement& statement = rule.statements()[s];
    if (IsRenaming(rule, statement)) continue;
    const double points = WorkOf(rule, extents, s, s + 1).pointwise_ops;
    StatementWalk(rule, extents, points, element_bytes, &traffic).Run(statement);
  }
  return traffic;
}

}  // namespace plancast
