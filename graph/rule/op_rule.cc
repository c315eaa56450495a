#include "graph/rule/op_rule.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "graph/rule/rule_verifier.h"

namespace plancast {
namespace {

void AppendUnique(int factor, std::vector<int>* list) {
  if (std::find(list->begin(), list->end(), factor) == list->end()) list->push_back(factor);
}

absl::string_view TypeSuffix(DType type) {
  if (type == DType::kFp32) return ":f32";
  if (type == DType::kUint8) return ":u8";
  return type == DType::kInt64 ? ":i64" : "";
}

// The box of a statement: the target's factors, then those of its value and
// conditions in the order of the text.
void FillBox(const std::vector<RuleTensor>& tensors, Statement* statement) {
  std::vector<int>& box = statement->factors;
  box = tensors[statement->target].factors;
  const size_t target_dims = box.size();
  VisitExpr(statement->value, [&](const Expr& e) {
    if (e.kind() == ExprKind::kIndicator) {
      AppendUnique(e.factor(), &box);
      if (e.tensor() < 0) AppendUnique(e.other_factor(), &box);
    }
    if (e.kind() == ExprKind::kElement || e.kind() == ExprKind::kIndicator) {
      if (e.tensor() < 0) return;
      for (int factor : tensors[e.tensor()].factors) AppendUnique(factor, &box);
    }
  });
  for (const Condition& c : statement->where) {
    for (int factor : c.Factors()) AppendUnique(factor, &box);
  }
  const std::vector<int>& target = tensors[statement->target].factors;
  statement->reduced.clear();
  for (size_t f = target_dims; f < box.size(); ++f) {
    if (!IsFixed(box[f], target, statement->where)) statement->reduced.push_back(box[f]);
  }
}

std::vector<int> TieClasses(const std::vector<std::string>& factors,
                            const std::vector<Statement>& statements) {
  std::vector<int> first(factors.size());
  for (size_t f = 0; f < first.size(); ++f) first[f] = static_cast<int>(f);
  for (const Statement& s : statements) {
    for (const Condition& c : s.where) {
      if (c.tied() < 0) continue;
      const int a = std::min(first[c.left], first[c.tied()]);
      const int b = std::max(first[c.left], first[c.tied()]);
      std::replace(first.begin(), first.end(), b, a);
    }
  }
  return first;
}

// By factor; tied factors are cut together or not at all.
std::vector<bool> CuttableFactors(const std::vector<int>& ties,
                                  const std::vector<Statement>& statements) {
  std::vector<bool> whole(ties.size());
  for (const Statement& s : statements) {
    // A recurrence has no states beyond its part to give to others as a halo.
    if (s.combine == Combine::kScan &&
        std::count(ties.begin(), ties.end(), ties[s.scan.factor]) > 1) {
      whole[ties[s.scan.factor]] = true;
    }
    if (s.combine != Combine::kOpaque) continue;
    for (int f : s.factors) {
      if (std::find(s.pointwise.begin(), s.pointwise.end(), f) == s.pointwise.end()) {
        whole[ties[f]] = true;
      }
    }
  }
  std::vector<bool> may_cut;
  for (int tie : ties) may_cut.push_back(!whole[tie]);
  return may_cut;
}

// ` += `, ` scan(t, reverse)= `, ` opaque(b)= `.
std::string CombineToString(const OpRule& rule, const Statement& s) {
  switch (s.combine) {
    case Combine::kAssign:
      return " = ";
    case Combine::kSum:
      return " += ";
    case Combine::kMax:
      return " max= ";
    case Combine::kScan:
      return absl::StrCat(" scan(", rule.factors()[s.scan.factor],
                          s.scan.reversed ? ", reverse" : "", s.scan.before ? ", before" : "",
                          ")= ");
    case Combine::kOpaque:
      return absl::StrCat(
          " opaque(",
          absl::StrJoin(s.pointwise, ", ",
                        [&](std::string* out, int f) { out->append(rule.factors()[f]); }),
          ")= ");
  }
  return " = ";
}

}  // namespace

absl::StatusOr<OpRule> OpRule::Create(std::string name, std::vector<std::string> factors,
                                      std::vector<RuleTensor> tensors, std::vector<int> inputs,
                                      std::vector<int> outputs, std::vector<Statement> statements,
                                      std::vector<int> saves, std::string fused) {
  OpRule rule;
  rule.name_ = std::move(name);
  rule.factors_ = std::move(factors);
  rule.tensors_ = std::move(tensors);
  rule.inputs_ = std::move(inputs);
  rule.outputs_ = std::move(outputs);
  rule.statements_ = std::move(statements);
  rule.saves_ = std::move(saves);
  rule.fused_ = std::move(fused);
  RETURN_IF_ERROR(VerifyRuleIndices(rule)) << "rule `" << rule.name_ << "`";
  for (Statement& statement : rule.statements_) FillBox(rule.tensors_, &statement);
  RETURN_IF_ERROR(VerifyRule(rule)) << "rule `" << rule.name_ << "`";
  rule.ties_ = TieClasses(rule.factors_, rule.statements_);
  rule.may_cut_ = CuttableFactors(rule.ties_, rule.statements_);
  for (const Statement& s : rule.statements_) {
    for (const Condition& c : s.where) rule.has_ties_ |= c.is_map() || c.is_promise();
  }
  return rule;
}

absl::StatusOr<int> OpRule::FindFactor(absl::string_view name) const {
  for (size_t f = 0; f < factors_.size(); ++f) {
    if (factors_[f] == name) return static_cast<int>(f);
  }
  return absl::NotFoundError(absl::StrCat("no factor `", name, "` in op `", name_, "`; it has `",
                                          absl::StrJoin(factors_, "`, `"), "`.",
                                          DidYouMean(name, factors_)));
}

absl::StatusOr<int> OpRule::FindTensor(absl::string_view name) const {
  std::vector<std::string> names;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].name == name) return static_cast<int>(t);
    names.push_back(tensors_[t].name);
  }
  return absl::NotFoundError(absl::StrCat("no tensor `", name, "` in op `", name_, "`; it has `",
                                          absl::StrJoin(names, "`, `"), "`.",
                                          DidYouMean(name, names)));
}

std::string ElementToString(const OpRule& rule, int tensor) {
  const RuleTensor& t = rule.tensors()[tensor];
  return absl::StrCat(
      t.name, "[",
      absl::StrJoin(t.factors, ",",
                    [&](std::string* out, int f) { out->append(rule.factors()[f]); }),
      "]");
}

std::string StatementToString(const OpRule& rule, const Statement& statement) {
  const ExprNames names = {[&](int t) { return ElementToString(rule, t); },
                           [&](int f) { return rule.factors()[f]; }};
  const RuleTensor& target = rule.tensors()[statement.target];
  std::string text = ElementToString(rule, statement.target);
  if (target.role == RuleTensor::Role::kIntermediate) {
    absl::StrAppend(&text, TypeSuffix(target.dtype));
  }
  absl::StrAppend(&text, CombineToString(rule, statement), ExprToString(statement.value, names));
  for (size_t i = 0; i < statement.where.size(); ++i) {
    absl::StrAppend(&text, i ? " and " : " where ", ConditionToString(statement.where[i], names));
  }
  return text;
}

std::string OpRule::DebugString() const {
  auto declare = [&](std::string* out, int t) {
    absl::StrAppend(out, tensors_[t].parameter ? "param " : "", tensors_[t].name,
                    TypeSuffix(tensors_[t].dtype));
  };
  std::string text = absl::StrCat(name_, "(", absl::StrJoin(inputs_, ", ", declare), ") -> (",
                                  absl::StrJoin(outputs_, ", ", declare), ") {\n  factors ",
                                  absl::StrJoin(factors_, ", "), "\n");
  for (const Statement& statement : statements_) {
    absl::StrAppend(&text, "  ", StatementToString(*this, statement), "\n");
  }
  if (!saves_.empty()) {
    absl::StrAppend(&text, "  save ",
                    absl::StrJoin(saves_, ", ",
                                  [&](std::string* out, int t) { out->append(tensors_[t].name); }),
                    "\n");
  }
  if (!fused_.empty()) absl::StrAppend(&text, "  fused ", fused_, "\n");
  return absl::StrCat(text, "}");
}

}  // namespace plancast
