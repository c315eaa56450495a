#ifndef PLANCAST_COMPILER_PROGRAM_PROGRAM_INPUTS_H_
#define PLANCAST_COMPILER_PROGRAM_PROGRAM_INPUTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/bind/bind.h"
#include "compiler/body/place.h"
#include "compiler/program/compiled_body.h"
#include "compiler/program/home_plan.h"
#include "compiler/program/shared_parameters.h"
#include "graph/dtype.h"
#include "graph/execution/execution_graph.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/schedule/stage_placement.h"
#include "strategy/software_profile.h"

namespace plancast {

class ParkingPlan;

// How tensors go over the border between two virtual stages on unlike meshes.
struct BorderCrossing {
  // In one phase: tensors forward, or their gradients back.
  struct Way {
    int reshard = -1;   // into ExecutionGraph::reshards
    int64_t bytes = 0;  // that cross, all together
    // Per tensor what a device of the stage before the border holds of it, and of the one
    // after; 0: it does not cross.
    std::vector<int64_t> before_bytes, after_bytes;
  };
  Way forward, backward;

  const Way& Of(Phase phase) const { return phase == Phase::kForward ? forward : backward; }
};

// How gradients of parameters that stages on unlike meshes share go from one stage to another.
struct SharedCrossing {
  int64_t from = 0, to = 0;  // stages
  int turn = 0;              // crossings of one turn go at once, behind those before
  int reshard = -1;          // into ExecutionGraph::reshards
  int64_t bytes = 0;         // that cross, all together
};

// Everything that the programs of all stages are made from.
struct ProgramInputs {
  const DeviceMesh* mesh = nullptr;
  const std::vector<std::vector<StageRun>>* stages = nullptr;  // per virtual stage
  const StagePlacement* placement = nullptr;                   // of these
  const PlanOptions* options = nullptr;
  const SoftwareProfile* profile = nullptr;
  DType dtype = DType::kBf16;
  const std::vector<std::shared_ptr<const CompiledBody>>* bodies = nullptr;  // per bound body
  const std::vector<SharedParameter>* shared = nullptr;  // placed on their stages
  const std::vector<Segment>* segments = nullptr;        // of the model
  const HomePlan* homes = nullptr;                       // null: no node says any
  const ParkingPlan* parking = nullptr;  // null: no stage keeps another's activations
  // Per border between virtual stages, where stages have meshes of their own; else null.
  const std::vector<BorderCrossing>* borders = nullptr;
  const Place* place = nullptr;  // that programs are of; null or empty: nodes are everywhere
  // Like `borders`, of gradients that stages share.
  const std::vector<SharedCrossing>* shared_crossings = nullptr;
};

// Names the program of a stage and says where it runs: the stage, and the place of what is on
// some ranks.
void SayWhere(const ProgramInputs& inputs, int64_t stage, Program* program);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_PROGRAM_INPUTS_H_
