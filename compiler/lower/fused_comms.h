#ifndef PLANCAST_COMPILER_LOWER_FUSED_COMMS_H_
#define PLANCAST_COMPILER_LOWER_FUSED_COMMS_H_

#include <map>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"

namespace plancast {

// What waits for what where collectives and ops are one kernel (PlanStep::fused): its parts begin
// together and work chunk by chunk, side by side, and who reads what it makes waits for all of it.
// The slower of the two sets its time.
class FusedComms {
 public:
  // What `step` has to wait for, for this value that was ready at task `ready`.
  void Wait(const PlanStep& step, int value, int ready, std::vector<int>* deps) const {
    const auto made = made_.find(value);
    if (made == made_.end()) {
      deps->push_back(ready);
    } else if (step.fused == made->second) {
      const std::vector<int>& begins = begins_.at(step.fused);
      deps->insert(deps->end(), begins.begin(), begins.end());
    } else {
      deps->push_back(ready);
      deps->push_back(last_kernel_.at(made->second));
    }
  }

  // The step's tasks were added after `deps`; `ready` is the last.
  void Note(const PlanStep& step, const std::vector<int>& deps, int ready) {
    if (step.fused < 0) return;
    for (const int value : step.outputs) made_[value] = step.fused;
    std::vector<int>& begins = begins_[step.fused];
    begins.insert(begins.end(), deps.begin(), deps.end());
    if (step.kind == PlanStep::Kind::kOp) last_kernel_[step.fused] = ready;
    last_kernel_.try_emplace(step.fused, ready);
  }

  // A reduce-scatter before the ops and an all-gather of as much behind them are an all-reduce
  // that computes in its midst, with the algorithms and protocols of one: the other half of the
  // step, or nullptr.
  static const PlanStep* OtherHalf(const LowerContext& context, const BodyPlan& plan,
                                   const std::vector<PlanStep>& steps, const PlanStep& step) {
    const auto dtype = [&](const PlanStep& of) {
      return FactsOf(*context.graph, context.body(), plan.values[of.inputs[0]].ref).dtype;
    };
    for (const PlanStep& other : steps) {
      if (step.fused < 0 || other.fused != step.fused) continue;
      if (other.kind != PlanStep::Kind::kRelayout) continue;
      const RelayoutStep &a = step.relayout.steps[0], &b = other.relayout.steps[0];
      const auto are = [&](CollectiveKind one, CollectiveKind two) {
        return a.kind == one && b.kind == two;
      };
      const bool halves = are(CollectiveKind::kReduceScatter, CollectiveKind::kAllGather) ||
                          are(CollectiveKind::kAllGather, CollectiveKind::kReduceScatter);
      const bool alike = a.axes == b.axes && a.elements == b.elements;
      if (halves && alike && dtype(step) == dtype(other)) return &other;
    }
    return nullptr;
  }

  // Whether the value comes to the step in registers.
  bool Hands(const PlanStep& step, int value) const {
    const auto made = made_.find(value);
    return step.fused >= 0 && made != made_.end() && made->second == step.fused;
  }

 private:
  std::map<int, int> made_;                 // by value: the number of what makes it
  std::map<int, std::vector<int>> begins_;  // by number: what its parts wait for
  std::map<int, int> last_kernel_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_FUSED_COMMS_H_
