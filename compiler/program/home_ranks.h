#ifndef PLANCAST_COMPILER_PROGRAM_HOME_RANKS_H_
#define PLANCAST_COMPILER_PROGRAM_HOME_RANKS_H_

#include <string>

#include "absl/status/status.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "compiler/body/place.h"
#include "graph/layout/layout.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"

namespace plancast {

// Where homes on ranks of axes are: in a program at `place`.
struct HomeRanks {
  const DeviceMesh& mesh;
  const PlanOptions& options;
  const Place& place;
};

// OK unless the home of a parameter that `op` reads is on a rank that cannot keep it: of its weight
// all ranks have copies, laid out as `weight`, and nothing of it is on the host.
absl::Status CheckHomeRank(const HomeRanks& in, const std::string& op, const OpHomes& said,
                           const TensorHomes& homes, const TensorInfo& tensor,
                           const Layout& weight);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_HOME_RANKS_H_
