#include "graph/rule/backward_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {

bool BackwardValues::IsSaved(int tensor) const {
  const std::vector<int>& saves = rule_.saves();
  return std::find(saves.begin(), saves.end(), tensor) != saves.end();
}

bool BackwardValues::InvertQuotient(int tensor, Statement* statement) const {
  for (const Statement& s : rule_.statements()) {
    const Expr& e = s.value;
    if (s.combine != Combine::kAssign || e.kind() != ExprKind::kQuotient || !IsSaved(s.target) ||
        e.operand(0).kind() != ExprKind::kElement || e.operand(0).tensor() != tensor ||
        e.operand(1).kind() != ExprKind::kElement || !IsSaved(e.operand(1).tensor()) ||
        rule_.tensors()[s.target].factors != rule_.tensors()[tensor].factors) {
      continue;
    }
    *statement = s;
    statement->target = tensor;
    statement->value = Multiply(Expr::Element(s.target), e.operand(1));
    return true;
  }
  return false;
}

absl::Status BackwardValues::Need(int tensor) {
  if (state_[tensor] == State::kReady) return absl::OkStatus();
  state_[tensor] = State::kReady;
  if (IsSaved(tensor)) return absl::OkStatus();
  const RuleTensor& t = rule_.tensors()[tensor];
  if (t.role == RuleTensor::Role::kInput) {
    return absl::InvalidArgumentError(absl::StrCat("op `", rule_.name(), "`: the backward reads `",
                                                   t.name, "`, which is not saved. Add `", t.name,
                                                   "` to its save list."));
  }
  Statement statement;
  if (!InvertQuotient(tensor, &statement)) {
    for (const Statement& s : rule_.statements()) {
      if (s.target == tensor) statement = s;
    }
    bool random = false;
    VisitExpr(statement.value,
              [&](const Expr& e) { random = random || e.kind() == ExprKind::kRandom; });
    if (random) {
      return absl::InvalidArgumentError(absl::StrCat(
          "op `", rule_.name(), "`: the backward reads `", t.name,
          "`, which is random and cannot be computed again. Add `", t.name, "` to its save list."));
    }
  }
  for (int source : TensorsOf(statement.value)) {
    if (absl::Status status = Need(source); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          status.message(), " (`", t.name, "` is computed from `", rule_.tensors()[source].name,
          "`; saving `", t.name, "` would do as well.)"));
    }
  }
  statements_.push_back(std::move(statement));
  return absl::OkStatus();
}

}  // namespace plancast
