#ifndef PLANCAST_COMPILER_LOOPS_PRODUCT_LOOPS_H_
#define PLANCAST_COMPILER_LOOPS_PRODUCT_LOOPS_H_

#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "strategy/nodes/part_transport.h"

namespace plancast {

// `overlap=tp`: makes loops over parts (CommLoop) of the products beside collectives of tensor
// parallelism, as the software moves their parts. Of an all-gather the first step that reads it, if
// that is a product whose result has the gathered factor: it begins with the part that is there.
// Of a reduce-scatter the product that makes what is summed, if nothing stands between. Products of
// weight gradients, whose sums are over that factor, go on running alongside whole collectives; ops
// of which a node says what they take in part by part have been done before.
void LoopOverProducts(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
                      const TpTransports& transports, BodyPlan* plan);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOOPS_PRODUCT_LOOPS_H_
