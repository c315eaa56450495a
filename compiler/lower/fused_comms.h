#ifndef PLANCAST_COMPILER_LOWER_FUSED_COMMS_H_
#define PLANCAST_COMPILER_LOWER_FUSED_COMMS_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// What waits for what where collectives and ops are one kernel (PlanStep::fused): its parts begin
// together and work chunk by chunk, side by side, and who reads what it makes waits for all of it.
// What the ops add to the collective's time depends on its blocks: CommSpec::fused.
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
    if (step.kind == PlanStep::Kind::kOp) last_kernel_[step.fused] = kernels_[step.fused] = ready;
    if (step.kind == PlanStep::Kind::kRelayout) comms_.try_emplace(step.fused, Comm{&step, ready});
    last_kernel_.try_emplace(step.fused, ready);
  }

  // Tells the first collective of each kernel what is computed in it. All of it is noted.
  void TellWork(const LowerContext& context, const BodyPlan& plan, BlockBuilder* builder) const {
    for (const auto& [number, kernel] : kernels_) {
      const auto comm = comms_.find(number);
      if (comm == comms_.end() || kernel < 0) continue;
      int task = comm->second.task;  // or a copy behind it
      while (task >= 0 && !builder->IsComm(task)) --task;
      if (task < 0) continue;
      const PlanStep& step = *comm->second.step;
      const bool gathers = step.relayout.steps[0].kind == CollectiveKind::kAllGather;
      const int part = gathers ? step.inputs[0] : step.outputs[0];
      const KernelSpec& spec = builder->KernelOf(kernel);
      FusedWork work;
      work.bytes = static_cast<int64_t>(std::ceil(context.LocalBytes(plan.values[part])));
      work.traffic = static_cast<int64_t>(std::ceil(spec.read_bytes + spec.write_bytes));
      work.of_sum = step.relayout.steps[0].kind == CollectiveKind::kReduceScatter;
      builder->Fuse(task, work);
    }
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
  std::map<int, int> last_kernel_, kernels_;
  struct Comm {
    const PlanStep* step = nullptr;
    int task = 0;
  };
  std::map<int, Comm> comms_;  // the first
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_FUSED_COMMS_H_
