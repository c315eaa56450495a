#ifndef PLANCAST_COMPILER_UNLIKE_STAGES_H_
#define PLANCAST_COMPILER_UNLIKE_STAGES_H_

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "compiler/session.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Compiles a plan whose stages have meshes of their own (PlanOptions::stages). Each stage is
// written as a stage of the plan in which all are as it is; what crosses a border is resharded, and
// so are gradients of parameters that stages share. Loads of experts
// are by device. Errors: beside those of such plans, an order of axes that stages of unlike sizes
// cannot have; devices between 0 and the last that no stage has and that are not idle.
absl::StatusOr<ExecutionGraph> CompileUnlikeStages(const CompileRequest& request, Session& session,
                                                   const PassObserver& observer);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_UNLIKE_STAGES_H_
