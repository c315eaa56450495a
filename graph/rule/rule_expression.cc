#include "graph/rule/rule_expression.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace plancast {
namespace {

// Deeper nesting than anybody writes; keeps hostile input off the stack's end.
constexpr int kMaxDepth = 100;

}  // namespace

absl::StatusOr<Expr> ExpressionParser::ParseValue(bool scan) {
  operators_ = 0;
  in_scan_ = scan;
  return ParseChain(0, /*sum=*/true);
}

const int64_t* ExpressionParser::FindLet(absl::string_view name) const {
  for (const auto& [attribute, value] : lets_) {
    if (attribute == name) return &value;
  }
  return nullptr;
}

absl::StatusOr<Expr> ExpressionParser::ParseChain(int depth, bool sum) {
  auto operand = [&] { return sum ? ParseChain(depth, false) : ParseUnary(depth); };
  ASSIGN_OR_RETURN(Expr left, operand());
  while (Peek().Is(sum ? "+" : "*") || Peek().Is(sum ? "-" : "/")) {
    const RuleToken symbol = Next();
    const ExprKind kind = symbol.Is("+")   ? ExprKind::kSum
                          : symbol.Is("-") ? ExprKind::kDifference
                          : symbol.Is("*") ? ExprKind::kProduct
                                           : ExprKind::kQuotient;
    SkipNewlines();
    if (++operators_ > kMaxOperators) return ErrorAt(Peek(), "the expression is too long.");
    ASSIGN_OR_RETURN(Expr right, operand());
    left = Expr::Binary(kind, std::move(left), std::move(right));
  }
  return left;
}

absl::StatusOr<Expr> ExpressionParser::ParseUnary(int depth) {
  if (depth > kMaxDepth) return ErrorAt(Peek(), "the expression is nested too deeply.");
  if (!Accept("-")) return ParseAtom(depth);
  if (Peek().kind == RuleToken::Kind::kNumber) return Expr::Number(-Next().number);
  ASSIGN_OR_RETURN(Expr operand, ParseUnary(depth + 1));
  return Expr::Negate(std::move(operand));
}

absl::StatusOr<Expr> ExpressionParser::ParseAtom(int depth) {
  if (Peek().kind == RuleToken::Kind::kNumber) return Expr::Number(Next().number);
  if (Accept("(")) {
    SkipNewlines();
    ASSIGN_OR_RETURN(Expr inner, ParseChain(depth + 1, true));
    SkipNewlines();
    RETURN_IF_ERROR(Expect(")"));
    return inner;
  }
  if (Accept("[")) return ParseIndicator();
  if (Accept("random")) {
    RETURN_IF_ERROR(Expect("("));
    RETURN_IF_ERROR(Expect(")"));
    return Expr::Random();
  }
  if (in_scan_ && Accept("previous")) return Expr::Previous();
  if (Accept("size")) {
    RETURN_IF_ERROR(Expect("("));
    Expr size = Expr::Number(1);
    if (Accept("...")) {
      ASSIGN_OR_RETURN(std::vector<int> rest, EllipsisFactors());
      for (int f : rest) size = Multiply(std::move(size), Expr::Size(f));
    } else {
      ASSIGN_OR_RETURN(RuleToken factor, ExpectName("a factor"));
      size = Expr::Size(rule_.FindOrAddFactor(factor.text));
    }
    RETURN_IF_ERROR(Expect(")"));
    return size;
  }
  ASSIGN_OR_RETURN(RuleToken name, ExpectName("an expression"));
  if (Peek().Is("[")) return ParseElement(name);
  if (!Accept("(")) {
    const int64_t* value = FindLet(name.text);
    return value == nullptr ? Expr::Attribute(name.text)
                            : Expr::Number(static_cast<double>(*value));
  }
  const std::optional<Function> function = FindFunction(name.text);
  if (!function.has_value()) return UnknownFunction(name);
  SkipNewlines();
  ASSIGN_OR_RETURN(Expr operand, ParseChain(depth + 1, true));
  SkipNewlines();
  RETURN_IF_ERROR(Expect(")"));
  return Expr::Apply(*function, std::move(operand));
}

absl::StatusOr<Expr> ExpressionParser::ParseElement(const RuleToken& name) {
  const int tensor = rule_.FindTensor(name.text);
  if (tensor < 0) return UnknownTensor(name);
  RETURN_IF_ERROR(ParseDims(name, tensor));
  return Expr::Element(tensor);
}

// After `[`: i == id[b] ] or i == j ]
absl::StatusOr<Expr> ExpressionParser::ParseIndicator() {
  ASSIGN_OR_RETURN(RuleToken left, ExpectName("a factor"));
  const int factor = rule_.FindOrAddFactor(left.text);
  RETURN_IF_ERROR(Expect("=="));
  ASSIGN_OR_RETURN(RuleToken right, ExpectName("a factor or an index tensor"));
  Expr indicator;
  if (Peek().Is("[")) {
    ASSIGN_OR_RETURN(Expr element, ParseElement(right));
    indicator = Expr::Indicator(factor, element.tensor());
  } else {
    indicator = Expr::FactorsEqual(factor, rule_.FindOrAddFactor(right.text));
  }
  RETURN_IF_ERROR(Expect("]"));
  return indicator;
}

absl::Status ExpressionParser::UnknownTensor(const RuleToken& name) {
  std::vector<std::string> known;
  for (const RuleTensor& tensor : rule_.tensors) known.push_back(tensor.name);
  return ErrorAt(name, absl::StrCat("no tensor `", name.text, "` here; so far there are ",
                                    JoinQuoted(known), ". A tensor is written before it is read."));
}

absl::Status ExpressionParser::UnknownFunction(const RuleToken& name) {
  return ErrorAt(name, absl::StrCat("no function `", name.text,
                                    "`; known: ", JoinQuoted(FunctionNames()), "."));
}

}  // namespace plancast
