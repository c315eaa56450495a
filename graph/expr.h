#ifndef PLANCAST_GRAPH_EXPR_H_
#define PLANCAST_GRAPH_EXPR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace plancast {

enum class Function : uint8_t {
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kRecip,
  kTanh,
  kSigmoid,
  kErf,
  kSin,
  kCos,
  kRelu,
  kStep,
};
absl::string_view FunctionName(Function function);  // `exp`, ...
std::optional<Function> FindFunction(absl::string_view name);

enum class ExprKind : uint8_t {
  kNumber,     // 0.5
  kAttribute,  // a scalar the op is called with: `eps`, `scale`, `lr`
  kSize,       // size(h): the global extent of a factor
  kElement,    // x[b,s,h]; a tensor always carries its own dim list
  kIndicator,  // [v == id[b,s]] or [i == j]: 1 where equal, else 0
  kRandom,     // random(): uniform in [0, 1), fresh at every point
  kFunction,
  kNegate,
  kSum,
  kDifference,
  kProduct,
  kQuotient,
};

// The right-hand side of a statement: an immutable tree, cheap to copy (shared
// nodes). Tensors and factors are indices into the rule that owns it.
class Expr {
 public:
  Expr() : Expr(Number(0)) {}

  static Expr Number(double value);
  static Expr Attribute(absl::string_view name);
  static Expr Size(int factor);
  static Expr Element(int tensor);
  static Expr Indicator(int factor, int index_tensor);  // [factor == index_tensor[...]]
  static Expr FactorsEqual(int factor, int other);      // [factor == other]
  static Expr Random();
  static Expr Apply(Function function, Expr operand);
  static Expr Negate(Expr operand);
  static Expr Binary(ExprKind kind, Expr left, Expr right);

  ExprKind kind() const { return node_->kind; }
  double number() const { return node_->number; }
  const std::string& attribute() const { return node_->name; }
  int tensor() const { return node_->tensor; }  // kElement, kIndicator (-1: factors)
  int factor() const { return node_->factor; }  // kSize, kIndicator
  int other_factor() const { return node_->other; }
  Function function() const { return node_->function; }
  int num_operands() const { return static_cast<int>(node_->operands.size()); }
  const Expr& operand(int index) const { return node_->operands[index]; }

  bool is_number(double value) const { return kind() == ExprKind::kNumber && number() == value; }

  // Structural equality.
  friend bool operator==(const Expr& a, const Expr& b);
  friend bool operator!=(const Expr& a, const Expr& b) { return !(a == b); }

 private:
  struct Node {
    ExprKind kind = ExprKind::kNumber;
    Function function = Function::kExp;
    int tensor = -1, factor = -1, other = -1;
    double number = 0;
    std::string name;
    std::vector<Expr> operands;
  };
  explicit Expr(Node node) : node_(std::make_shared<const Node>(std::move(node))) {}

  std::shared_ptr<const Node> node_;
};

// Arithmetic that folds numbers and drops neutral elements (0 + x, 1 * x,
// 0 * x, x / 1, -(-x)), so that derived rules stay readable.
Expr Add(Expr a, Expr b);
Expr Subtract(Expr a, Expr b);
Expr Multiply(Expr a, Expr b);
Expr Divide(Expr a, Expr b);
Expr Minus(Expr a);

// Calls `visit` on every node, parents before children, left before right.
void VisitExpr(const Expr& expr, const std::function<void(const Expr&)>& visit);
// The tensors read, elements and indices of indicators, each once, in order.
std::vector<int> TensorsOf(const Expr& expr);
// The same tree with every tensor t replaced by tensor map[t].
Expr RenameTensors(const Expr& expr, const std::vector<int>& map);

// `left <= right + offset` over two factors.
struct Condition {
  enum class Relation : uint8_t { kLessEqual, kLess, kEqual };
  int left = -1;
  Relation relation = Relation::kLessEqual;
  int right = -1;
  int64_t offset = 0;

  bool Holds(int64_t left_index, int64_t right_index) const {
    const int64_t bound = right_index + offset;
    if (relation == Relation::kLessEqual) return left_index <= bound;
    return relation == Relation::kLess ? left_index < bound : left_index == bound;
  }
  friend bool operator==(const Condition& a, const Condition& b) {
    return a.left == b.left && a.relation == b.relation && a.right == b.right &&
           a.offset == b.offset;
  }
};

// Names by which an expression prints its tensors and factors.
struct ExprNames {
  std::function<std::string(int tensor)> element;  // `x[b,s]`
  std::function<std::string(int factor)> factor;   // `b`
};
// Text that parses back to an equal tree.
std::string ExprToString(const Expr& expr, const ExprNames& names);
std::string ConditionToString(const Condition& condition, const ExprNames& names);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXPR_H_
