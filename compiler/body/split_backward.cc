#include "compiler/body/split_backward.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace plancast {
namespace {

// A value and what it is a piece of: who reads or makes one has to do with the other.
template <typename Use>
void ForEachWhole(const BodyPlan& plan, int value, Use use) {
  for (; value >= 0; value = plan.values[value].part_of) use(value);
}

// Per step of the backward pass: an in-port's gradient depends on it, or it runs again.
std::vector<bool> NeededNow(const BodyPlan& plan) {
  std::vector<bool> wanted(plan.values.size(), false);
  for (const int value : plan.grad_out_ports) {
    if (value >= 0) wanted[value] = true;
  }
  std::vector<bool> now(plan.backward.size(), false);
  for (size_t s = plan.backward.size(); s-- > 0;) {
    const PlanStep& step = plan.backward[s];
    bool makes = step.awaited;
    for (const int output : step.outputs) {
      ForEachWhole(plan, output, [&](int value) { makes = makes || wanted[value]; });
    }
    if (!makes && step.part != Part::kRecompute && !step.turns) continue;
    now[s] = true;
    ForEachRead(step, [&](int read) {
      ForEachWhole(plan, read, [&](int value) { wanted[value] = true; });
    });
  }
  return now;
}

}  // namespace

void MarkAwaited(BodyPlan* plan) {
  const std::vector<bool> now = NeededNow(*plan);
  for (size_t s = 0; s < now.size(); ++s) plan->backward[s].awaited = now[s];
}

BackwardHalves SplitBackward(const BodyPlan& plan, const std::vector<int>& groups) {
  BackwardHalves halves;
  const bool waited_for = std::any_of(plan.grad_out_ports.begin(), plan.grad_out_ports.end(),
                                      [](int value) { return value >= 0; });
  if (!waited_for) return halves;
  const std::vector<bool> now = NeededNow(plan);
  std::set<int> groups_now;
  for (size_t s = 0; s < now.size(); ++s) {
    if (now[s]) groups_now.insert(groups[s]);
  }
  std::vector<int> place(plan.backward.size(), -1);  // in its half
  std::vector<bool> later(plan.backward.size(), false), made_later(plan.values.size(), false);
  std::set<int> reads;
  for (size_t s = 0; s < plan.backward.size(); ++s) {
    later[s] = groups_now.count(groups[s]) == 0;
    StepsInGroups& half = later[s] ? halves.weights : halves.inputs;
    place[s] = static_cast<int>(half.steps.size());
    half.groups.push_back(groups[s]);
    PlanStep& step = half.steps.emplace_back(plan.backward[s]);
    // What W would wait for in B is over.
    if (step.after >= 0) step.after = later[s] == later[step.after] ? place[step.after] : -1;
    if (!later[s]) continue;
    ForEachRead(step, [&](int value) {
      if (!made_later[value] && reads.insert(value).second) halves.reads.push_back(value);
    });
    for (const int output : step.outputs) {
      ForEachWhole(plan, output, [&](int value) { made_later[value] = true; });
    }
  }
  return halves;
}

}  // namespace plancast
