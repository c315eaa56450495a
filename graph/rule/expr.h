#ifndef PLANCAST_GRAPH_RULE_EXPR_H_
#define PLANCAST_GRAPH_RULE_EXPR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

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
absl::Span<const absl::string_view> FunctionNames();
std::optional<Function> FindFunction(absl::string_view name);

enum class ExprKind : uint8_t {
  kNumber,     // 0.5
  kAttribute,  // a scalar the op is called with: `eps`, `scale`, `lr`
  kSize,       // size(h): the global extent of a factor
  kElement,    // x[b,s,h]; a tensor always carries its own dim list
  kIndicator,  // [v == id[b,s]] or [i == j]: 1 where equal, else 0
  kRandom,     // random(): uniform in [0, 1), fresh at every point
  kPrevious,   // previous: the state that a recurrence comes from
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
  static Expr Previous();
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

// `number * size(a) * size(b) * factor`, or a constant of sizes.
struct AffineTerm {
  int64_t number = 1;
  std::vector<int> sizes;  // factors whose global extents it is multiplied with
  int factor = -1;         // -1: none

  int64_t Coefficient(absl::Span<const int64_t> extents) const;
  friend bool operator==(const AffineTerm& a, const AffineTerm& b) {
    return a.number == b.number && a.sizes == b.sizes && a.factor == b.factor;
  }
};

// A factor compared with an affine index of others: `t <= s`,
// `p == 2 * i + k - 1`, `f == size(j) * i + j`.
//
// An equality is an index map: it fixes its left factor at every point of the
// others. The left factor is *tied* to the first factor on the right (`p` runs
// along `i`, `k` only moves it inside a window), so a cut of one cuts the other
// at the same place, up to a halo.
//
// `r follows s` is a promise about the index tensor that the statement looks `s`
// up in: however `s` is cut, the i-th part of `r` names only indices of the i-th
// part of `s`, or none. It restricts no point; it ties `r` to `s` without a halo.
struct Condition {
  enum class Relation : uint8_t { kLessEqual, kLess, kEqual, kFollows };
  int left = -1;
  Relation relation = Relation::kLessEqual;
  std::vector<AffineTerm> terms;
  int64_t offset = 0;

  // `left relation right + offset`.
  static Condition Pair(int left, Relation relation, int right, int64_t offset = 0);

  bool is_map() const { return relation == Relation::kEqual; }
  bool is_promise() const { return relation == Relation::kFollows; }
  // Two factors without coefficients, as Pair makes them.
  bool is_pair() const;
  int right() const { return terms[0].factor; }  // of a pair
  // The factor that the left one of a map or promise is tied to; -1: none.
  int tied() const;
  // A map that numbers the points of its right factors without gaps or
  // repetition: `f == size(j) * i + j`.
  bool is_radix() const;
  bool Mentions(int factor) const;   // on either side, not inside size()
  std::vector<int> Factors() const;  // left, then those of the terms

  int64_t RightSide(absl::Span<const int64_t> point, absl::Span<const int64_t> extents) const;
  bool Holds(absl::Span<const int64_t> point, absl::Span<const int64_t> extents) const;
  friend bool operator==(const Condition& a, const Condition& b) {
    return a.left == b.left && a.relation == b.relation && a.terms == b.terms &&
           a.offset == b.offset;
  }
};

// Index maps fix `factor` wherever the indices of the dims `target` are given: it
// is the left side of a map, or what the map of a target dim takes apart.
bool IsFixed(int factor, const std::vector<int>& target, const std::vector<Condition>& where);
// The map in `where` with `factor` on the left, or null.
const Condition* MapOf(int factor, const std::vector<Condition>& where);

// Names by which an expression prints its tensors and factors.
struct ExprNames {
  std::function<std::string(int tensor)> element;  // `x[b,s]`
  std::function<std::string(int factor)> factor;   // `b`
};
// Text that parses back to an equal tree.
std::string ExprToString(const Expr& expr, const ExprNames& names);
std::string ConditionToString(const Condition& condition, const ExprNames& names);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_RULE_EXPR_H_
