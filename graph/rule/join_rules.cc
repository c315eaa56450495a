#include "graph/rule/join_rules.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// Numbers of a rule's tensors and factors in the joined one.
struct Names {
  std::vector<int> tensors, factors;
};

std::vector<int> Mapped(const std::vector<int>& list, const std::vector<int>& map) {
  std::vector<int> out;
  for (const int value : list) out.push_back(map[value]);
  return out;
}

Expr Renamed(const Expr& expr, const Names& names) {
  switch (expr.kind()) {
    case ExprKind::kSize:
      return Expr::Size(names.factors[expr.factor()]);
    case ExprKind::kElement:
      return Expr::Element(names.tensors[expr.tensor()]);
    case ExprKind::kIndicator:
      if (expr.tensor() < 0) {
        return Expr::FactorsEqual(names.factors[expr.factor()], names.factors[expr.other_factor()]);
      }
      return Expr::Indicator(names.factors[expr.factor()], names.tensors[expr.tensor()]);
    case ExprKind::kFunction:
      return Expr::Apply(expr.function(), Renamed(expr.operand(0), names));
    case ExprKind::kNegate:
      return Expr::Negate(Renamed(expr.operand(0), names));
    case ExprKind::kSum:
    case ExprKind::kDifference:
    case ExprKind::kProduct:
    case ExprKind::kQuotient:
      return Expr::Binary(expr.kind(), Renamed(expr.operand(0), names),
                          Renamed(expr.operand(1), names));
    default:
      return expr;
  }
}

Statement Renamed(Statement statement, const Names& names) {
  statement.target = names.tensors[statement.target];
  statement.value = Renamed(statement.value, names);
  statement.factors = Mapped(statement.factors, names.factors);
  statement.reduced = Mapped(statement.reduced, names.factors);
  statement.pointwise = Mapped(statement.pointwise, names.factors);
  if (statement.scan.factor >= 0) statement.scan.factor = names.factors[statement.scan.factor];
  for (Condition& condition : statement.where) {
    condition.left = names.factors[condition.left];
    for (AffineTerm& term : condition.terms) {
      if (term.factor >= 0) term.factor = names.factors[term.factor];
      term.sizes = Mapped(term.sizes, names.factors);
    }
  }
  return statement;
}

// A name that is not taken: `k`, `k_1`, ...
std::string Fresh(const std::string& name, std::set<std::string>* taken) {
  std::string fresh = name;
  for (int i = 1; !taken->insert(fresh).second; ++i) fresh = absl::StrCat(name, "_", i);
  return fresh;
}

}  // namespace

absl::StatusOr<OpRule> JoinRules(const OpRule& first, const OpRule& second, const RuleJoin& join) {
  std::vector<std::string> factors = second.factors();
  std::set<std::string> taken(factors.begin(), factors.end());
  Names of_first, of_second;
  of_first.factors.assign(first.factors().size(), -1);
  for (size_t f = 0; f < factors.size(); ++f) of_second.factors.push_back(static_cast<int>(f));
  std::set<int> linked_inputs, linked_outputs;
  for (const auto& [output, input] : join.links) {
    const RuleTensor& made = first.tensors()[first.outputs()[output]];
    const RuleTensor& read = second.tensors()[second.inputs()[input]];
    for (size_t d = 0; d < made.factors.size(); ++d) {
      int& factor = of_first.factors[made.factors[d]];
      if (factor >= 0 && factor != read.factors[d]) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", second.name(), "` reads `", made.name, "` of `", first.name(),
                         "` along `", factors[factor], "` and along `", factors[read.factors[d]],
                         "`, and one op has one list of dims for each tensor."));
      }
      factor = read.factors[d];
    }
    linked_inputs.insert(input);
    linked_outputs.insert(output);
  }
  for (size_t f = 0; f < of_first.factors.size(); ++f) {
    if (of_first.factors[f] >= 0) continue;
    of_first.factors[f] = static_cast<int>(factors.size());
    factors.push_back(Fresh(first.factors()[f], &taken));
  }

  std::vector<RuleTensor> tensors;
  std::set<std::string> names;
  for (RuleTensor tensor : first.tensors()) {
    of_first.tensors.push_back(static_cast<int>(tensors.size()));
    tensor.factors = Mapped(tensor.factors, of_first.factors);
    names.insert(tensor.name);
    tensors.push_back(std::move(tensor));
  }
  std::vector<int> inputs = Mapped(first.inputs(), of_first.tensors), outputs;
  for (size_t o = 0; o < first.outputs().size(); ++o) {
    const int number = static_cast<int>(o);
    const int tensor = of_first.tensors[first.outputs()[o]];
    const bool kept = std::count(join.kept.begin(), join.kept.end(), number) > 0;
    if (linked_outputs.count(number) > 0 && !kept) {
      tensors[tensor].role = RuleTensor::Role::kIntermediate;
    } else {
      outputs.push_back(tensor);
    }
  }
  of_second.tensors.assign(second.tensors().size(), -1);
  for (const auto& [output, input] : join.links) {
    of_second.tensors[second.inputs()[input]] = of_first.tensors[first.outputs()[output]];
  }
  for (size_t t = 0; t < second.tensors().size(); ++t) {
    if (of_second.tensors[t] >= 0) continue;
    RuleTensor tensor = second.tensors()[t];
    tensor.name = Fresh(tensor.name, &names);
    of_second.tensors[t] = static_cast<int>(tensors.size());
    tensors.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < second.inputs().size(); ++i) {
    if (linked_inputs.count(static_cast<int>(i)) > 0) continue;
    inputs.push_back(of_second.tensors[second.inputs()[i]]);
  }
  for (const int output : second.outputs()) outputs.push_back(of_second.tensors[output]);

  std::vector<Statement> statements;
  for (const Statement& statement : first.statements()) {
    statements.push_back(Renamed(statement, of_first));
  }
  for (const Statement& statement : second.statements()) {
    statements.push_back(Renamed(statement, of_second));
  }
  std::vector<int> saves = Mapped(first.saves(), of_first.tensors);
  for (const int save : Mapped(second.saves(), of_second.tensors)) {
    if (std::count(saves.begin(), saves.end(), save) == 0) saves.push_back(save);
  }
  const std::string fused = first.fused() == second.fused() ? first.fused() : "";
  return OpRule::Create(second.name(), std::move(factors), std::move(tensors), std::move(inputs),
                        std::move(outputs), std::move(statements), std::move(saves), fused);
}

}  // namespace plancast
