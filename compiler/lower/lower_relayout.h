#ifndef PLANCAST_COMPILER_LOWER_LOWER_RELAYOUT_H_
#define PLANCAST_COMPILER_LOWER_LOWER_RELAYOUT_H_

#include <cstdint>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// Whether the parts that a collective over `axes` joins or cuts are apart in memory: `cut` is the
// layout in which a tensor of this shape has parts.
bool PartsLieApart(const DeviceMesh& mesh, const std::vector<int64_t>& shape, const Layout& cut,
                   const std::vector<int>& axes);

// The axes over which an exchange from `before` ends in copies, of those that it runs over, if
// there are others. Who shares a copy may receive a part of it each from those who have the same
// place on these axes, all as much, and gather the copy: no part comes from afar twice. So do
// programs that send tokens to experts whose weights tp cuts (Megatron-LM's
// MoEAlltoAllTokenDispatcher). That takes copies of a dim that no axis of the exchange cuts in the
// end.
std::vector<int> AxesOfCopies(const RelayoutStep& step, const Layout& before);

// Appends the collectives of a relayout step, and what the software runs beside them:
// with `quantized_share` < 1 (bytes of a quantised activation over those as stored) a
// tensor that is gathered is quantised first, and with `first_dim_collectives` of the
// profile copies put parts of other dims than the first in order; with
// `reduces_each_product` the gradients of an input that several products read are
// all-reduced one by one and summed behind. Returns the task that
// the result is ready behind, or kNone.
// Of several values that go together (PlanStep) it is one exchange of what the busiest root has.
int AddRelayout(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                double quantized_share, std::vector<int> deps, BlockBuilder* builder);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_LOWER_RELAYOUT_H_
