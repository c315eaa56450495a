#ifndef PLANCAST_COMPILER_PLAN_BODIES_H_
#define PLANCAST_COMPILER_PLAN_BODIES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/bind/bind.h"
#include "compiler/compiler.h"
#include "compiler/program/compiled_body.h"
#include "compiler/program/program_inputs.h"
#include "compiler/program/shared_ports.h"
#include "compiler/session.h"

namespace plancast {

// The model bound to a mesh, with each of its bodies compiled: all that does not
// depend on how layers are dealt to stages, on the number of micro-batches, or
// on how the optimizer is sharded.
struct PlanBodies {
  // As the first plan that asked had it: the sizes of the data- and pipeline-
  // parallel axes and the stages may be another plan's.
  BoundModel bound;
  std::vector<std::shared_ptr<const CompiledBody>> bodies;  // per bound body
  std::vector<SharedParameter> shared;                      // without their stages
  bool depends_on_data_ranks = false;                       // CompiledBody: of any of the bodies
  // Of the bodies, for plans that put them side by side.
  std::shared_ptr<PortVariants> variants = std::make_shared<PortVariants>();
};

// bind -> differentiate -> partition -> relayout -> synchronise and the blocks
// of every body. Memoised in `session` where the request names its graph.
absl::StatusOr<std::shared_ptr<const PlanBodies>> CompileBodies(const CompileRequest& request,
                                                                Session& session,
                                                                const PassObserver& observer);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PLAN_BODIES_H_
