#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/rule/expr.h"

namespace plancast {
namespace {

// Binding strength; an operand is bracketed if it binds less than needed.
enum Strength { kAdditive = 1, kMultiplicative = 2, kUnary = 3, kAtom = 4 };

// The shortest decimal that reads back as the same double.
std::string NumberToString(double value) {
  char buffer[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
    if (std::strtod(buffer, nullptr) == value) break;
  }
  return buffer;
}

Strength StrengthOf(const Expr& e) {
  switch (e.kind()) {
    case ExprKind::kSum:
    case ExprKind::kDifference:
      return kAdditive;
    case ExprKind::kProduct:
    case ExprKind::kQuotient:
      return kMultiplicative;
    case ExprKind::kNegate:
      return kUnary;
    case ExprKind::kNumber:
      return e.number() < 0 ? kUnary : kAtom;
    default:
      return kAtom;
  }
}

void Print(const Expr& e, int needed, const ExprNames& names, std::string* out) {
  const Strength strength = StrengthOf(e);
  const bool brackets = strength < needed;
  if (brackets) out->push_back('(');
  switch (e.kind()) {
    case ExprKind::kNumber:
      out->append(NumberToString(e.number()));
      break;
    case ExprKind::kAttribute:
      out->append(e.attribute());
      break;
    case ExprKind::kSize:
      absl::StrAppend(out, "size(", names.factor(e.factor()), ")");
      break;
    case ExprKind::kElement:
      out->append(names.element(e.tensor()));
      break;
    case ExprKind::kIndicator:
      absl::StrAppend(
          out, "[", names.factor(e.factor()),
          " == ", e.tensor() < 0 ? names.factor(e.other_factor()) : names.element(e.tensor()), "]");
      break;
    case ExprKind::kRandom:
      out->append("random()");
      break;
    case ExprKind::kPrevious:
      out->append("previous");
      break;
    case ExprKind::kFunction:
      absl::StrAppend(out, FunctionName(e.function()), "(");
      Print(e.operand(0), kAdditive, names, out);
      out->push_back(')');
      break;
    case ExprKind::kNegate:
      out->push_back('-');
      // `-2` would read back as a number, so a negated one is bracketed.
      Print(e.operand(0), e.operand(0).kind() == ExprKind::kNumber ? kAtom + 1 : kUnary, names,
            out);
      break;
    default: {
      const bool additive = strength == kAdditive;
      const char* symbol = e.kind() == ExprKind::kSum          ? " + "
                           : e.kind() == ExprKind::kDifference ? " - "
                           : e.kind() == ExprKind::kProduct    ? " * "
                                                               : " / ";
      Print(e.operand(0), strength, names, out);
      out->append(symbol);
      // Operators associate to the left.
      Print(e.operand(1), additive ? kMultiplicative : kUnary, names, out);
    }
  }
  if (brackets) out->push_back(')');
}

}  // namespace

std::string ExprToString(const Expr& expr, const ExprNames& names) {
  std::string out;
  Print(expr, kAdditive, names, &out);
  return out;
}

namespace {

void AppendTerm(const AffineTerm& term, const ExprNames& names, std::string* out) {
  const bool first = out->empty();
  const int64_t number = std::abs(term.number);
  out->append(term.number < 0 ? (first ? "-" : " - ") : (first ? "" : " + "));
  std::vector<std::string> parts;
  if (number != 1) parts.push_back(absl::StrCat(number));
  for (int f : term.sizes) parts.push_back(absl::StrCat("size(", names.factor(f), ")"));
  if (term.factor >= 0) parts.push_back(names.factor(term.factor));
  absl::StrAppend(out, absl::StrJoin(parts, " * "));
}

}  // namespace

std::string ConditionToString(const Condition& condition, const ExprNames& names) {
  const char* relation = condition.relation == Condition::Relation::kLessEqual ? " <= "
                         : condition.relation == Condition::Relation::kLess    ? " < "
                         : condition.is_promise()                              ? " follows "
                                                                               : " == ";
  std::string right;
  for (const AffineTerm& term : condition.terms) AppendTerm(term, names, &right);
  if (right.empty()) {
    absl::StrAppend(&right, condition.offset);
  } else if (condition.offset != 0) {
    absl::StrAppend(&right, condition.offset > 0 ? " + " : " - ", std::abs(condition.offset));
  }
  return absl::StrCat(names.factor(condition.left), relation, right);
}

}  // namespace plancast
