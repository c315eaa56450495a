#include "graph/rule/rule_verifier.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/rule/recurrence.h"

namespace plancast {
namespace {

bool InRange(int index, size_t size) { return index >= 0 && index < static_cast<int>(size); }

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The first index of `expr` that is out of range is an error.
absl::Status CheckExprIndices(const OpRule& rule, const Expr& expr) {
  bool ok = true;
  VisitExpr(expr, [&](const Expr& e) {
    const bool names_tensor =
        e.kind() == ExprKind::kElement || (e.kind() == ExprKind::kIndicator && e.tensor() != -1);
    if (names_tensor) ok = ok && InRange(e.tensor(), rule.tensors().size());
    if (e.kind() == ExprKind::kIndicator || e.kind() == ExprKind::kSize) {
      ok = ok && InRange(e.factor(), rule.factors().size());
    }
    if (e.kind() == ExprKind::kIndicator && e.tensor() == -1) {
      ok = ok && InRange(e.other_factor(), rule.factors().size());
    }
  });
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError("an expression names a tensor or factor that is not there.");
}

// A factor has one index map, and no map goes round in a circle.
absl::Status CheckMaps(const OpRule& rule, const Statement& s, const std::string& text) {
  std::vector<const Condition*> map_of(rule.factors().size(), nullptr);
  for (const Condition& c : s.where) {
    if (!c.is_map()) continue;
    if (map_of[c.left] != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", text, "` maps factor `", rule.factors()[c.left], "` twice."));
    }
    map_of[c.left] = &c;
  }
  for (size_t f = 0; f < map_of.size(); ++f) {
    std::vector<int> open = {static_cast<int>(f)};
    for (size_t steps = 0; !open.empty(); ++steps) {
      const Condition* map = map_of[open.back()];
      open.pop_back();
      if (map == nullptr) continue;
      for (const AffineTerm& term : map->terms) {
        if (term.factor >= 0) open.push_back(term.factor);
        if (term.factor == static_cast<int>(f) || steps > 1000) {
          return absl::InvalidArgumentError(
              absl::StrCat("`", text, "` maps factor `", rule.factors()[f], "` to itself."));
        }
      }
    }
  }
  return absl::OkStatus();
}

// The value is a product with `[s == t[...]]` where t has factor `slot`.
bool LooksUpFrom(const OpRule& rule, const Expr& e, int s, int slot) {
  auto operand = [&](int i) { return LooksUpFrom(rule, e.operand(i), s, slot); };
  switch (e.kind()) {
    case ExprKind::kIndicator:
      return e.factor() == s && e.tensor() >= 0 &&
             Contains(rule.tensors()[e.tensor()].factors, slot);
    case ExprKind::kNegate:
    case ExprKind::kQuotient:
      return operand(0);
    case ExprKind::kProduct:
      return operand(0) || operand(1);
    case ExprKind::kSum:
    case ExprKind::kDifference:
      return operand(0) && operand(1);
    default:
      return false;
  }
}

// A promise is about a table by which the statement looks tokens up for slots, so
// that points outside equal parts add nothing.
absl::Status CheckPromises(const OpRule& rule, const Statement& s, const std::string& text) {
  for (const Condition& c : s.where) {
    if (!c.is_promise()) continue;
    const std::string& slot = rule.factors()[c.left];
    if (!c.is_pair() || c.offset != 0 || c.left == c.right()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", text, "`: `", slot, "` follows one other factor and nothing else."));
    }
    const std::string& token = rule.factors()[c.right()];
    if (s.combine == Combine::kMax || !LooksUpFrom(rule, s.value, c.right(), c.left)) {
      return absl::InvalidArgumentError(absl::StrCat("`", text, "`: `", slot, " follows ", token,
                                                     "` is a promise about an index tensor t of `",
                                                     slot, "`: sum something times `[", token,
                                                     " == t[", slot, "]]`."));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckScan(const OpRule& rule, const Statement& s, const std::string& text) {
  const std::string along = rule.factors()[s.scan.factor];
  if (!Contains(rule.tensors()[s.target].factors, s.scan.factor)) {
    return absl::InvalidArgumentError(absl::StrCat("`", text, "` runs along factor `", along,
                                                   "`, which is missing on the left."));
  }
  if (s.factors.size() != rule.tensors()[s.target].factors.size() || !s.where.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text,
                     "`: a recurrence has all its factors on the left and no conditions; reduce "
                     "or map in a statement of its own."));
  }
  if (!AsRecurrence(s.value).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` is not linear in `previous`; write `a * previous + b`."));
  }
  return absl::OkStatus();
}

absl::Status CheckOpaque(const OpRule& rule, const Statement& s, const std::string& text) {
  for (int f : s.pointwise) {
    if (Contains(rule.tensors()[s.target].factors, f)) continue;
    return absl::InvalidArgumentError(absl::StrCat("`", text, "` is one function for each `",
                                                   rule.factors()[f],
                                                   "`, which is missing on the left."));
  }
  if (!s.where.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "`: an opaque statement has no conditions."));
  }
  return absl::OkStatus();
}

absl::Status CheckStatement(const OpRule& rule, const Statement& s,
                            const std::vector<bool>& written) {
  const std::string text = StatementToString(rule, s);
  const RuleTensor& target = rule.tensors()[s.target];
  if (target.role == RuleTensor::Role::kInput) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` writes the input `", target.name, "`; write a new tensor."));
  }
  if (written[s.target]) {
    return absl::InvalidArgumentError(absl::StrCat("`", text, "` writes `", target.name,
                                                   "` a second time; each tensor has one "
                                                   "statement."));
  }
  if (s.combine != Combine::kScan && !(ReplacePrevious(s.value, Expr::Number(0)) == s.value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` reads `previous` and is no recurrence."));
  }
  for (int t : TensorsOf(s.value)) {
    if (!written[t]) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", text, "` reads `", rule.tensors()[t].name, "` before it is written."));
    }
  }
  if (s.combine == Combine::kAssign && !s.reduced.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` assigns, but factor `", rule.factors()[s.reduced[0]],
                     "` is missing on the left; write `+=` or `max=` to reduce it."));
  }
  if (s.combine == Combine::kScan) {
    RETURN_IF_ERROR(CheckScan(rule, s, text));
  } else if (s.combine == Combine::kOpaque) {
    RETURN_IF_ERROR(CheckOpaque(rule, s, text));
  }
  const bool reduces = s.combine == Combine::kSum || s.combine == Combine::kMax;
  if (reduces && s.factors.size() == target.factors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` reduces nothing: all factors are on the left; write `=`."));
  }
  absl::Status status;
  VisitExpr(s.value, [&](const Expr& e) {
    if (e.kind() == ExprKind::kIndicator && e.tensor() >= 0 &&
        rule.tensors()[e.tensor()].dtype != DType::kInt64) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("`", text, "` compares factor `", rule.factors()[e.factor()], "` with `",
                       rule.tensors()[e.tensor()].name,
                       "`, which is no index tensor; declare it "
                       "`",
                       rule.tensors()[e.tensor()].name, ":i64`.")));
    }
  });
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(CheckPromises(rule, s, text));
  return CheckMaps(rule, s, text);
}

}  // namespace

absl::Status VerifyRuleIndices(const OpRule& rule) {
  if (rule.name().empty()) return absl::InvalidArgumentError("a rule needs a name.");
  absl::flat_hash_set<std::string> names;
  for (const std::string& factor : rule.factors()) {
    if (factor.empty() || !names.insert(factor).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("factor names must be unique; `", factor, "` is not."));
    }
  }
  names.clear();
  for (const RuleTensor& tensor : rule.tensors()) {
    if (tensor.name.empty() || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor names must be unique; `", tensor.name, "` is not."));
    }
    for (size_t d = 0; d < tensor.factors.size(); ++d) {
      if (!InRange(tensor.factors[d], rule.factors().size())) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor `", tensor.name, "` names a factor that is not there."));
      }
      if (std::count(tensor.factors.begin(), tensor.factors.end(), tensor.factors[d]) > 1) {
        return absl::InvalidArgumentError(absl::StrCat("tensor `", tensor.name, "` has factor `",
                                                       rule.factors()[tensor.factors[d]],
                                                       "` on two dims; use two factors."));
      }
    }
  }
  for (const std::vector<int>* list : {&rule.inputs(), &rule.outputs(), &rule.saves()}) {
    for (int tensor : *list) {
      if (!InRange(tensor, rule.tensors().size())) {
        return absl::InvalidArgumentError("a list names a tensor that is not there.");
      }
      if (std::count(list->begin(), list->end(), tensor) > 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor `", rule.tensors()[tensor].name, "` is listed twice."));
      }
    }
  }
  for (const Statement& s : rule.statements()) {
    if (!InRange(s.target, rule.tensors().size())) {
      return absl::InvalidArgumentError("a statement's target is not there.");
    }
    RETURN_IF_ERROR(CheckExprIndices(rule, s.value));
    std::vector<int> named = s.pointwise;
    if (s.combine == Combine::kScan) named.push_back(s.scan.factor);
    for (int factor : named) {
      if (InRange(factor, rule.factors().size())) continue;
      return absl::InvalidArgumentError("a statement names a factor that is not there.");
    }
    for (const Condition& c : s.where) {
      bool ok = true;
      for (int factor : c.Factors()) ok = ok && InRange(factor, rule.factors().size());
      for (const AffineTerm& term : c.terms) {
        for (int factor : term.sizes) ok = ok && InRange(factor, rule.factors().size());
      }
      if (!ok) {
        return absl::InvalidArgumentError("a condition names a factor that is not there.");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyRule(const OpRule& rule) {
  if (rule.outputs().empty()) return absl::InvalidArgumentError("it has no output.");
  std::vector<bool> written(rule.tensors().size());
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    const int index = static_cast<int>(t);
    const RuleTensor& tensor = rule.tensors()[t];
    const bool input = Contains(rule.inputs(), index), output = Contains(rule.outputs(), index);
    if (input != (tensor.role == RuleTensor::Role::kInput) ||
        output != (tensor.role == RuleTensor::Role::kOutput)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor `", tensor.name, "` is not listed as its role says."));
    }
    if (tensor.parameter && !input) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor `", tensor.name, "` is a parameter but no input."));
    }
    written[t] = input;
  }
  std::vector<bool> read(rule.tensors().size());
  for (const Statement& s : rule.statements()) {
    RETURN_IF_ERROR(CheckStatement(rule, s, written));
    written[s.target] = true;
    for (int t : TensorsOf(s.value)) read[t] = true;
  }
  for (int t : rule.inputs()) {
    if (!read[t]) {
      return absl::InvalidArgumentError(
          absl::StrCat("input `", rule.tensors()[t].name, "` is never read."));
    }
  }
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    if (!written[t]) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", rule.tensors()[t].name, "` is never written."));
    }
  }
  return absl::OkStatus();
}

}  // namespace plancast
