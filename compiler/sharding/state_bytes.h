#ifndef PLANCAST_COMPILER_SHARDING_STATE_BYTES_H_
#define PLANCAST_COMPILER_SHARDING_STATE_BYTES_H_

#include <cstdint>

#include "cluster/device_mesh.h"
#include "compiler/lower/body_state.h"
#include "graph/dtype.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// Sizes of one device's state.
struct StateBytes {
  double parameters = 0, gradients = 0, optimizer = 0;
};
// `kept`: of how many parameters the device keeps the optimizer's state; `products`: how
// many of `parameters` are BodyState::product_parameters; `matrices`: how many of `kept` Muon
// updates as matrices.
StateBytes StateOf(const SoftwareProfile& profile, DType dtype, int64_t parameters, int64_t kept,
                   int64_t products = 0, int64_t matrices = 0);
// Bytes of parameters stored as `type`, or sent in it: 8- and 4-bit floats are for
// `products` alone.
double ParameterBytes(DType type, DType dtype, int64_t parameters, int64_t products);
double ParameterWireBytes(DType type, DType dtype, int64_t parameters, int64_t products);
// Bytes of parameters that are not trained: in the model's type, without a copy in another, or
// in fewer bits where ParamType has them; on the wire in fewer where GatherType has.
double FrozenBytes(const SoftwareProfile& profile, DType dtype, const FrozenParameters& frozen);
double FrozenWireBytes(const SoftwareProfile& profile, DType dtype, const FrozenParameters& frozen);
// Bytes of the optimizer's state of `kept` parameters: master copy and moments.
double OptimizerBytes(const SoftwareProfile& profile, DType dtype, int64_t kept,
                      int64_t matrices = 0);
// That number: its share of `parameters`, where the optimizer is `sharded`; those that
// are `cut`, which are among them, are shared by fewer.
int64_t KeptElements(const DeviceMesh& mesh, const PlanOptions& options, bool sharded,
                     int64_t parameters, const ElementsByAxes& cut = {});
// Of parameters whose home shards them over axes of its own.
int64_t KeptElementsOver(const DeviceMesh& mesh, const PlanOptions& options, const HomeAxes& over,
                         const ElementsByCopies& own);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_STATE_BYTES_H_
