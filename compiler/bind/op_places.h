#ifndef PLANCAST_COMPILER_BIND_OP_PLACES_H_
#define PLANCAST_COMPILER_BIND_OP_PLACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "compiler/body/place.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// The coordinates of the ranks that run the op at `path`, along the axes of which nodes name some.
// Axes are cut where nodes ask for it (MeshOf), so that the ranks of a part are all of the inner
// sub-axes. Errors: ranks that the mesh does not have; parts that do not nest in other cuts.
absl::StatusOr<OnRanksOf> RanksOfOp(const Resolved& resolved, const std::string& path,
                                    const DeviceMesh& mesh);

// The coordinates of the rank that a home is on, none along axes of one rank; none for other homes.
OnRanksOf RanksOfHome(const Home& home, const DeviceMesh& mesh);

// The places of a plan, in which what runs or is kept differs: one for each coordinate along the
// axes that nodes and their homes name ranks of. One, empty, where none does.
std::vector<Place> PlacesOf(const std::vector<BoundBody>& bodies, const DeviceMesh& mesh);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_OP_PLACES_H_
