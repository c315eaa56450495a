#ifndef PLANCAST_COMPILER_LOWER_KERNELS_LOOP_PIECES_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_LOOP_PIECES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "graph/kernel_spec.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"

namespace plancast {

// Whether the loop is a ring over cp and nothing else.
bool IsContextRing(const LowerContext& context, const CommLoop& loop);
// How many query heads read each head of keys in attention.
double QueriesPerKey(const LowerContext& context, const PlanStep& step);

// The kernels of each part of an op that is a loop over parts (comm_loops.h), as KernelsOf has
// those of the whole; each but the first adds to what those before it made, where all make a
// summand of one result: a product in its own sum, others in a pass over both. Rings over cp do
// what the software does (ContextSteps).
std::vector<std::vector<KernelSpec>> PieceKernels(const LowerContext& context, const BodyPlan& plan,
                                                  const PlanStep& step, KernelPart part,
                                                  double extra_read_bytes,
                                                  const std::string& label);

// The work of statements [begin, end) of the part of a loop that `part` is, on the device that has
// the most to do in that step. `local`: factor sizes of a part.
OpWork WorkOfPiece(const LowerContext& context, const KernelPart& part,
                   const std::vector<int64_t>& local, int begin, int end);

// Whether a condition on positions (`where t <= s`) makes unlike work of parts of a factor that the
// split cuts.
bool CutsConditions(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh);
// The work of statements [begin, end) of such an op on the device that has the most to do.
OpWork WorkOfBusiest(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh,
                     const std::vector<int64_t>& extents, int begin, int end);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_LOOP_PIECES_H_
