#ifndef PLANCAST_COMPILER_BIND_JOINED_LAYERS_H_
#define PLANCAST_COMPILER_BIND_JOINED_LAYERS_H_

#include <cstdint>
#include <vector>

#include "compiler/bind/bind.h"
#include "graph/model/model_graph.h"

namespace plancast {

// One body that runs `bodies` after each other: out-ports of one are the in-ports of the
// next, model inputs of one name are one tensor, everything else each has its own, ops by
// the names that they had. At least one body; ports agree in number. `tensors`: of each body the
// numbers that its tensors got.
Body JoinBodies(const std::vector<const Body*>& bodies,
                std::vector<std::vector<int>>* tensors = nullptr);

// Makes every `layers` neighbouring modules of lists in a virtual stage one body, whose
// layer-wide recomputation (OpReplay::whole) runs all of them again at once: Megatron's
// `--recompute-method uniform`. What is left at the end of a stage is joined likewise.
void JoinLayers(int64_t layers, BoundModel* bound);

// Makes every BoundBody::unit neighbouring layers of one list in a virtual stage one body, which
// sharded data parallelism gathers and reduces together, or each piece runs through
// (PieceRun::through_unit); each recomputes what it did. Units end where layers with another unit
// begin.
void JoinUnits(BoundModel* bound);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_JOINED_LAYERS_H_
