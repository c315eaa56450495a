#include "compiler/body/relayout_rules.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/body/relayout_pass.h"

namespace plancast {

const Layout& InputLayout(const OpStep& step, size_t i) {
  return step.partition.tensors[step.rule->inputs()[i]];
}

// The op only adds tensors of one shape: `y[b,s,h] = x[b,s,h] + r[b,s,h]`.
bool IsPlainSum(const OpRule& rule) {
  if (rule.statements().size() != 1 || rule.inputs().size() < 2) return false;
  const Statement& statement = rule.statements()[0];
  bool plain = statement.combine == Combine::kAssign && statement.where.empty();
  VisitExpr(statement.value, [&](const Expr& e) {
    plain &= e.kind() == ExprKind::kSum || e.kind() == ExprKind::kElement;
  });
  for (const RuleTensor& tensor : rule.tensors()) {
    plain &= tensor.factors == rule.tensors()[statement.target].factors;
  }
  return plain;
}

bool MakesCutGradients(const PlanStep& step, const Body& body, const std::vector<int>& axes) {
  for (size_t i = 0; i < step.op.outputs.size(); ++i) {
    const TensorRef& ref = step.op.outputs[i];
    if (ref.op >= 0 || body.tensors[ref.tensor].kind != TensorInfo::Kind::kParameter) continue;
    const Layout& layout = step.op.partition.tensors[step.op.rule->outputs()[i]];
    const auto cuts = [&](int axis) { return layout.placements[axis].is_shard(); };
    if (std::any_of(axes.begin(), axes.end(), cuts)) return true;
  }
  return false;
}

std::vector<std::optional<Layout>> WantedInPorts(const Body& body,
                                                 const DifferentiatedBody& steps) {
  std::vector<std::optional<Layout>> layouts;
  for (int port : body.in_ports) {
    std::optional<Layout> wanted;
    for (const OpStep& step : steps.forward) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        if (wanted.has_value() && !wanted->has_on()) break;
        if (step.inputs[i] == TensorRef{port, -1, false, false} &&
            !(wanted.has_value() && InputLayout(step, i).has_on())) {
          wanted = InputLayout(step, i).WithoutHalos();
        }
      }
    }
    layouts.push_back(std::move(wanted));
  }
  return layouts;
}

size_t BorderOfLoop(const Relayout& relayout) {
  const auto is = [](const RelayoutStep& step, CollectiveKind kind) {
    return step.is_collective && step.kind == kind;
  };
  const std::vector<RelayoutStep>& steps = relayout.steps;
  if (steps.size() < 2) return 0;
  if (is(steps.back(), CollectiveKind::kAllGather)) return steps.size() - 1;
  return is(steps[0], CollectiveKind::kReduceScatter) ? 1 : 0;
}

bool GathersOver(const std::vector<int>& axes, const Layout& kept, const Layout& wanted) {
  return std::any_of(axes.begin(), axes.end(), [&](int a) {
    return kept.placements[a].is_shard() && wanted.placements[a].is_replicate();
  });
}

bool Gathers(const Layout& kept, const Layout& wanted) {
  std::vector<int> axes(kept.placements.size());
  std::iota(axes.begin(), axes.end(), 0);
  return GathersOver(axes, kept, wanted);
}

bool Crosses(const Layout& kept, const Layout& wanted) {
  for (size_t a = 0; a < kept.placements.size(); ++a) {
    const Placement &from = kept.placements[a], &to = wanted.placements[a];
    if (from.is_shard() && to.is_shard() && from.dim != to.dim) return true;
  }
  return false;
}

}  // namespace plancast
