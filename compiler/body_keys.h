#ifndef PLANCAST_COMPILER_BODY_KEYS_H_
#define PLANCAST_COMPILER_BODY_KEYS_H_

#include <string>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/bind/bind.h"
#include "compiler/compiler.h"
#include "graph/layout/layout.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"

// Under which keys a Session memoises what the passes make of a body.
namespace plancast {

// A body as its ops are written: no sizes.
std::string BodyText(const Body& body);

// Everything that the derivatives of a body depend on. `text`: BodyText.
std::string StepsKey(const BoundBody& body, const CompileRequest& request, const std::string& text);

// Everything that the passes over one body depend on. Sizes of the data- and
// pipeline-parallel axes are left out where the body's shards do not change
// with them, so that plans share bodies. What is on a device may still depend on the size of
// the first (CompiledBody::depends_on_data_ranks): that is seen when it is made. `any_dp`:
// OnlyBatchIsDataParallel.
std::string BodyKey(const BoundModel& bound, const BoundBody& body, const CompileRequest& request,
                    bool any_dp, const std::string& text);

std::string LayoutsKey(const std::vector<Layout>& layouts, const DeviceMesh& mesh);

// Gathers and scatters of sequence parallelism run alongside their products.
bool OverlapsProducts(const PlanOptions& options);
// Gradients of experts' weights are made while tokens are under way (InsertRelayouts).
// Megatron-Bridge's recipes set delay_wgrad_compute with overlap_moe_expert_parallel_comm
// (training/comm_overlap.py, MoE A2A overlap).
bool DelaysExperts(const PlanOptions& options);
// Steps of rings over cp do not wait for what is sent beside them, whatever the software does.
bool HidesContext(const PlanOptions& options);
// Who gets which documents, on which the work of the busiest depends; empty: there are none.
std::string DealKey(const ModelGraph& graph, const PlanOptions& options);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_KEYS_H_
