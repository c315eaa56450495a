#include "compiler/loops/beside.h"

#include <algorithm>

namespace plancast {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

const RelayoutStep* OnlyCollective(const PlanStep& step, CollectiveKind kind) {
  if (step.kind != PlanStep::Kind::kRelayout || step.inputs.size() != 1) return nullptr;
  if (step.relayout.steps.size() != 1) return nullptr;
  const RelayoutStep& only = step.relayout.steps[0];
  return only.is_collective && only.kind == kind ? &only : nullptr;
}

int DimOver(const Layout& cut, const std::vector<int>& axes) {
  int dim = -1;
  for (const int axis : axes) {
    const Placement& placement = cut.placements[axis];
    if (!placement.is_shard() || (dim >= 0 && placement.dim != dim)) return -1;
    dim = placement.dim;
  }
  return dim;
}

std::vector<int> CountReaders(const BodyPlan& plan) {
  std::vector<int> readers(plan.values.size(), 0);
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      ForEachRead(step, [&](int value) { ++readers[value]; });
    }
  }
  for (const std::vector<int>* kept :
       {&plan.saved, &plan.out_ports, &plan.grad_out_ports, &plan.in_ports}) {
    for (const int value : *kept) {
      if (value >= 0) ++readers[value];
    }
  }
  return readers;
}

PlanStep* FindMaker(std::vector<PlanStep>* steps, int value) {
  const auto found = std::find_if(steps->begin(), steps->end(), [value](const PlanStep& step) {
    return Contains(step.outputs, value);
  });
  return found == steps->end() ? nullptr : &*found;
}

PlanStep* FindReader(std::vector<PlanStep>* steps, int value) {
  const auto found = std::find_if(steps->begin(), steps->end(), [value](const PlanStep& step) {
    return Contains(step.inputs, value);
  });
  return found == steps->end() ? nullptr : &*found;
}

}  // namespace plancast
