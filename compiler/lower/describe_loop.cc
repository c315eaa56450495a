#include "compiler/lower/describe_loop.h"

#include <algorithm>
#include <vector>

#include "compiler/lower/kernels/loop_pieces.h"
#include "compiler/lower/lower_relayout.h"
#include "graph/dtype.h"

namespace plancast {
namespace {

// Whether others than the op of the loop read the value, in this pass or a later one.
bool OthersRead(const BodyPlan& plan, int value, int loop) {
  const auto is = [value](int read) { return read == value; };
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      bool reads = false;
      ForEachRead(step, [&](int read) { reads |= is(read); });
      if (reads && step.loop != loop) return true;
    }
  }
  return std::any_of(plan.saved.begin(), plan.saved.end(), is);
}

// Whether what comes for a product lies part by part in memory while others read it whole: where
// collectives join tensors along their first dim, parts of another dim do so too.
bool CopiesWhole(const LowerContext& context, const BodyPlan& plan, const PlanStep& step) {
  const CommLoop& loop = plan.loops[step.loop];
  if (!context.profile->kernels.first_dim_collectives || loop.comes.whole()) return false;
  const TensorFacts facts =
      FactsOf(*context.graph, context.body(), plan.values[step.inputs[0]].ref);
  return PartsLieApart(*context.mesh, facts.shape, step.relayout.source, loop.axes) &&
         OthersRead(plan, step.outputs[0], step.loop);
}

}  // namespace

void DescribeLoop(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                  BlockTemplate::Loop* loop) {
  const CommLoop& said = plan.loops[step.loop];
  loop->how = said;
  if (step.kind == PlanStep::Kind::kRelayout && step.into_loop) {
    loop->copies_whole = CopiesWhole(context, plan, step);
  }
  if (!IsContextRing(context, said)) return;
  loop->steps = context.profile->kernels.context_steps;
  loop->steps.waits &= !context.hides_context;
  if (step.kind != PlanStep::Kind::kOp) return;
  loop->wider = loop->steps.repeats_kv ? QueriesPerKey(context, step) : 1;
  const double cast = ElementBytes(DType::kFp32) / context.Bytes(DType::kCompute);
  loop->wider_sums = loop->wider * (loop->steps.fp32_sums ? cast : 1);
}

}  // namespace plancast
