#include "compiler/body/placed_plan.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compiler/body/split_backward.h"

namespace plancast {
namespace {

// Takes steps that are empty out of a list; who waits for one of these waits no more.
void DropSteps(const std::vector<bool>& dropped, std::vector<PlanStep>* steps) {
  std::vector<int> number(steps->size(), -1);
  std::vector<PlanStep> kept;
  for (size_t s = 0; s < steps->size(); ++s) {
    if (dropped[s]) continue;
    number[s] = static_cast<int>(kept.size());
    kept.push_back(std::move((*steps)[s]));
    if (kept.back().after >= 0) kept.back().after = number[kept.back().after];
  }
  *steps = std::move(kept);
}

// What of a relayout the devices at `place` take part in: all that goes on over axes along which
// alone they lack the tensor.
Relayout RelayoutAt(Relayout relayout, const Place& place) {
  Layout before = relayout.source;
  std::vector<RelayoutStep> steps;
  for (RelayoutStep& step : relayout.steps) {
    const Layout after = step.after;
    const bool here = place.HoldsBeside(before, step.axes) && place.HoldsBeside(after, step.axes);
    if (!step.is_collective || here) steps.push_back(std::move(step));
    before = after;
  }
  relayout.steps = std::move(steps);
  return relayout;
}

bool Exchanges(const PlanStep& step) {
  return std::any_of(step.relayout.steps.begin(), step.relayout.steps.end(),
                     [](const RelayoutStep& r) { return r.is_collective; });
}

// The single gather or scatter that a step is, or nullptr.
const RelayoutStep* RootedStep(const PlanStep& step) {
  if (step.kind != PlanStep::Kind::kRelayout || step.relayout.steps.size() != 1) return nullptr;
  const RelayoutStep& only = step.relayout.steps[0];
  const bool rooted = only.kind == CollectiveKind::kGather || only.kind == CollectiveKind::kScatter;
  return only.is_collective && rooted ? &only : nullptr;
}

int RootOf(const PlanStep& step) {
  const int axis = step.relayout.steps[0].axes[0];
  const Placement& source = step.relayout.source.placements[axis];
  return source.is_on() ? source.at : step.relayout.target.placements[axis].at;
}

// Whether all ranks take part.
bool ForAll(const PlanStep& step) {
  const int axis = step.relayout.steps[0].axes[0];
  for (const Layout* layout : {&step.relayout.source, &step.relayout.target}) {
    for (size_t a = 0; a < layout->placements.size(); ++a) {
      if (static_cast<int>(a) != axis && layout->placements[a].is_on()) return false;
    }
  }
  return true;
}

void JoinIn(const BoundBody& bound, size_t values, std::vector<PlanStep>* list) {
  std::vector<PlanStep>& steps = *list;
  std::vector<int> maker(values, -1);
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const int value : steps[s].outputs) maker[value] = static_cast<int>(s);
  }
  std::vector<bool> dropped(steps.size(), false);
  for (size_t s = 0; s < steps.size(); ++s) {
    const RelayoutStep* const first = dropped[s] ? nullptr : RootedStep(steps[s]);
    if (first == nullptr || !ForAll(steps[s])) continue;
    std::vector<size_t> joined = {s};
    std::set<int> roots = {RootOf(steps[s])};
    for (size_t t = s + 1; t < steps.size(); ++t) {
      const RelayoutStep* const next = dropped[t] ? nullptr : RootedStep(steps[t]);
      if (next == nullptr) {
        // Ops of single ranks may be overtaken.
        const bool alone =
            steps[t].kind == PlanStep::Kind::kOp && !bound.OnOf(steps[t].op.op).empty();
        if (!alone && !dropped[t]) break;
        continue;
      }
      const bool alike = next->kind == first->kind && next->axes == first->axes &&
                         maker[steps[t].inputs[0]] < static_cast<int>(s) && ForAll(steps[t]);
      if (!alike) continue;
      joined.push_back(t);
      roots.insert(RootOf(steps[t]));
    }
    if (roots.size() < 2) continue;
    PlanStep& exchange = steps[s];
    for (size_t j = 1; j < joined.size(); ++j) {
      PlanStep& other = steps[joined[j]];
      exchange.inputs.push_back(other.inputs[0]);
      exchange.outputs.push_back(other.outputs[0]);
      maker[other.outputs[0]] = static_cast<int>(s);
      dropped[joined[j]] = true;
    }
    exchange.relayout.steps[0].kind = CollectiveKind::kAllToAll;
  }
  DropSteps(dropped, &steps);
}

}  // namespace

void JoinRooted(const BoundBody& bound, BodyPlan* plan) {
  JoinIn(bound, plan->values.size(), &plan->forward);
  JoinIn(bound, plan->values.size(), &plan->backward);
}

BodyPlan PlanAt(BodyPlan plan, const BoundBody& bound, const Place& place) {
  MarkAwaited(&plan);
  const auto held = [&](int value) { return place.Holds(plan.values[value].layout); };
  for (std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    std::vector<bool> dropped(steps->size());
    for (size_t s = 0; s < steps->size(); ++s) {
      PlanStep& step = (*steps)[s];
      if (step.kind == PlanStep::Kind::kOp) {
        dropped[s] = !place.Runs(bound.OnOf(step.op.op));
      } else if (step.kind == PlanStep::Kind::kAdd) {
        dropped[s] = !held(step.outputs[0]);
      } else {
        step.relayout = RelayoutAt(std::move(step.relayout), place);
        dropped[s] =
            !Exchanges(step) && std::none_of(step.outputs.begin(), step.outputs.end(), held);
      }
    }
    DropSteps(dropped, steps);
  }
  plan.saved.erase(
      std::remove_if(plan.saved.begin(), plan.saved.end(), [&](int value) { return !held(value); }),
      plan.saved.end());
  const auto gone = [&](const BodyPlan::ParameterGrad& grad) { return !place.Holds(grad.layout); };
  plan.parameter_grads.erase(
      std::remove_if(plan.parameter_grads.begin(), plan.parameter_grads.end(), gone),
      plan.parameter_grads.end());
  plan.place = place;
  return plan;
}

}  // namespace plancast
