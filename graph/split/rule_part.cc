#include "graph/split/rule_part.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Tensors that the statements that make `wanted` read or write, those included.
std::vector<bool> NeededFor(const OpRule& rule, const std::vector<int>& wanted) {
  std::vector<bool> needed(rule.tensors().size(), false);
  for (int t : wanted) needed[t] = true;
  for (auto s = rule.statements().rbegin(); s != rule.statements().rend(); ++s) {
    if (!needed[s->target]) continue;
    for (int t : TensorsOf(s->value)) needed[t] = true;
  }
  return needed;
}

}  // namespace

absl::StatusOr<OpRule> PartOf(const OpRule& rule, const std::vector<int>& outputs) {
  std::vector<int> wanted;
  for (int i : outputs) wanted.push_back(rule.outputs()[i]);
  const std::vector<bool> needed = NeededFor(rule, wanted);
  std::vector<int> renumbered(rule.tensors().size(), -1);
  std::vector<RuleTensor> tensors;
  for (size_t t = 0; t < renumbered.size(); ++t) {
    if (!needed[t]) continue;
    renumbered[t] = static_cast<int>(tensors.size());
    tensors.push_back(rule.tensors()[t]);
    RuleTensor::Role& role = tensors.back().role;
    if (role == RuleTensor::Role::kOutput && !Contains(wanted, static_cast<int>(t))) {
      role = RuleTensor::Role::kIntermediate;
    }
  }
  std::vector<int> inputs;
  for (int t : rule.inputs()) {
    if (needed[t]) inputs.push_back(renumbered[t]);
  }
  for (int& t : wanted) t = renumbered[t];
  std::vector<Statement> statements;
  for (Statement s : rule.statements()) {
    if (!needed[s.target]) continue;
    s.target = renumbered[s.target];
    s.value = RenameTensors(s.value, renumbered);
    statements.push_back(std::move(s));
  }
  return OpRule::Create(absl::StrCat(rule.name(), ".part"), rule.factors(), std::move(tensors),
                        std::move(inputs), std::move(wanted), std::move(statements), {},
                        rule.fused());
}

std::vector<int> PlainProducts(const OpRule& rule) {
  std::vector<int> plain;
  if (!rule.fused().empty()) return plain;
  const std::vector<int64_t> ones(rule.factors().size(), 1);
  const OpWork work = WorkOf(rule, ones, 0, static_cast<int>(rule.statements().size()));
  for (size_t i = 0; i < rule.outputs().size(); ++i) {
    for (const Contraction& c : work.contractions) {
      const Statement& statement = rule.statements()[c.statement];
      if (statement.target != rule.outputs()[i]) continue;
      const std::vector<int> operands = TensorsOf(statement.value);
      if (operands.size() != 2) continue;
      const auto weight = std::find_if(operands.begin(), operands.end(),
                                       [&](int t) { return rule.tensors()[t].parameter; });
      if (weight == operands.end()) continue;
      const int other = operands[0] == *weight ? operands[1] : operands[0];
      const auto in_all = [&](int factor) {
        return Contains(rule.tensors()[other].factors, factor) &&
               Contains(rule.tensors()[statement.target].factors, factor);
      };
      const std::vector<int>& factors = rule.tensors()[*weight].factors;
      if (std::none_of(factors.begin(), factors.end(), in_all))
        plain.push_back(static_cast<int>(i));
    }
  }
  return plain;
}

}  // namespace plancast
