#ifndef PLANCAST_COMPILER_LOOPS_COMM_LOOPS_H_
#define PLANCAST_COMPILER_LOOPS_COMM_LOOPS_H_

#include <set>

#include "absl/status/status.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// OK if an op may run in `pieces` parts of a factor, one after the other: each part makes its own
// part of a result, or a summand of it, or the statistics of an online softmax, which are put
// together. Errors: the op needs all of it before it goes on, or reads beyond its part.
absl::Status CheckLoop(const OpRule& rule, int factor, int64_t pieces);

// Makes loops of the ops that nodes tell to take tensors in part by part (`communicate`, `rotate`;
// BoundBody::loops): of each, the all-gathers before it that gather along the loop's factor, which
// nothing else reads, and, where the loop turns, the reduce-scatters behind it that leave each
// device its part of the sum (the gradients of what came in): every part takes its sum along.
//
// Ring attention, Cannon's algorithm and its kin, and loops with a broadcast in each step (SUMMA)
// differ in the rule and in the axes alone. Steps keep their values and relayouts: what the plan
// computes does not change, only when parts of it move (docs/loops.md).
// Errors, which begin with the node: a reader that needs a tensor whole; an op that CheckLoop
// refuses; gathers of unlike numbers of parts in one loop. What is said of all tensors (`*`) holds
// where it can.
absl::Status LoopOverParts(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
                           BodyPlan* plan);

// The ops of a body that run so.
std::set<int> OpsInParts(const BodyPlan& plan);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOOPS_COMM_LOOPS_H_
