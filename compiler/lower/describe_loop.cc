#include "compiler/lower/describe_loop.h"

#include "compiler/lower/kernels/loop_pieces.h"
#include "graph/dtype.h"

namespace plancast {

void DescribeLoop(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                  BlockTemplate::Loop* loop) {
  const CommLoop& said = plan.loops[step.loop];
  loop->how = said;
  if (!IsContextRing(context, said)) return;
  loop->steps = context.profile->kernels.context_steps;
  loop->steps.waits &= !context.hides_context;
  if (step.kind != PlanStep::Kind::kOp) return;
  loop->wider = loop->steps.repeats_kv ? QueriesPerKey(context, step) : 1;
  const double cast = ElementBytes(DType::kFp32) / context.Bytes(DType::kCompute);
  loop->wider_sums = loop->wider * (loop->steps.fp32_sums ? cast : 1);
}

}  // namespace plancast
