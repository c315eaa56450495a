#include "executor/contention/comm_priority.h"

#include "graph/execution/execution_graph.h"

namespace plancast {

CommPriority PriorityOf(const CommUse& use) {
  uint32_t streams = 0;
  for (const StreamMask of_program : use.streams) streams |= of_program;
  constexpr uint32_t kGrad = MaskOf(StreamKind::kGradComm) | MaskOf(StreamKind::kReplicaComm);
  // Compute: communications that kernels wait for on the spot.
  constexpr uint32_t kModel = MaskOf(StreamKind::kModelComm) | MaskOf(StreamKind::kExpertComm) |
                              MaskOf(StreamKind::kCompute);
  if ((streams & kModel) != 0) return kModelParallel;
  return (streams & ~kGrad) != 0 ? kPipeline : kGradients;
}

}  // namespace plancast
