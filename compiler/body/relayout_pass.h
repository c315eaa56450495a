#ifndef PLANCAST_COMPILER_BODY_RELAYOUT_PASS_H_
#define PLANCAST_COMPILER_BODY_RELAYOUT_PASS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "strategy/software_profile.h"

namespace plancast {

// The layouts in which the first readers of a body want its in-ports, less halos,
// which each body exchanges itself; none for a port that it does not read. Readers on some ranks
// count where there are no others: a body hands on to all.
std::vector<std::optional<Layout>> WantedInPorts(const Body& body, const DifferentiatedBody& steps);

// Joins producers and readers: where their layouts differ a relayout step is
// put in, once for all readers. Gradients of a tensor with several readers are
// summed, those of equal layout first. Saved values keep the layout that the
// profile says (sharded ones are gathered again in the backward phase).
// `in_ports` and `out_ports`: layouts in which tensors enter and must leave.
// Gradients of experts' weights are made before those of their tokens are sent back, as autograd
// does; `delays_experts`: beside that (Megatron's delay_wgrad_compute).
absl::StatusOr<BodyPlan> InsertRelayouts(const ModelGraph& graph, const DeviceMesh& mesh,
                                         const BoundBody& bound, const DifferentiatedBody& steps,
                                         const std::vector<Layout>& in_ports,
                                         const std::vector<Layout>& out_ports,
                                         const SoftwareProfile& profile,
                                         bool delays_experts = false);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_RELAYOUT_PASS_H_
