#ifndef PLANCAST_COMPILER_PLACES_H_
#define PLANCAST_COMPILER_PLACES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/body/place.h"
#include "compiler/compiler.h"
#include "compiler/session.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Where programs of a plan differ: one place for each coordinate along the mesh axes of which
// nodes name ranks (`on`); a single empty one where no node does. Errors: those of binding, and
// more places than programs can be written for.
absl::StatusOr<std::vector<Place>> PlacesOf(const CompileRequest& request);

// Compiles a plan with nodes on some ranks. Each stage has a program for each place, written as if
// what is elsewhere did not exist; what goes on over axes along which places differ is met for by
// the programs of all of them, in one order. Errors: besides those of other plans, stages with
// meshes of their own.
absl::StatusOr<ExecutionGraph> CompilePlaces(const CompileRequest& request,
                                             const std::vector<Place>& places, Session& session,
                                             const PassObserver& observer);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PLACES_H_
