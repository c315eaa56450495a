#ifndef PLANCAST_COMPILER_PROGRAM_PROGRAM_INPUTS_H_
#define PLANCAST_COMPILER_PROGRAM_PROGRAM_INPUTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/bind/bind.h"
#include "compiler/program/compiled_body.h"
#include "compiler/program/home_plan.h"
#include "compiler/program/shared_parameters.h"
#include "graph/dtype.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// Everything that the programs of all stages are made from.
struct ProgramInputs {
  const DeviceMesh* mesh = nullptr;
  const std::vector<std::vector<StageRun>>* stages = nullptr;  // per virtual stage
  const PlanOptions* options = nullptr;
  const SoftwareProfile* profile = nullptr;
  DType dtype = DType::kBf16;
  const std::vector<std::shared_ptr<const CompiledBody>>* bodies = nullptr;  // per bound body
  const std::vector<SharedParameter>* shared = nullptr;  // placed on their stages
  const std::vector<Segment>* segments = nullptr;        // of the model
  const HomePlan* homes = nullptr;                       // null: no node says any
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_PROGRAM_INPUTS_H_
