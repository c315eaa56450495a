#ifndef PLANCAST_COMPILER_PROGRAM_PLAN_H_
#define PLANCAST_COMPILER_PROGRAM_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/bind/bind.h"
#include "compiler/compiler.h"
#include "compiler/plan_bodies.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program/compiled_body.h"
#include "compiler/program/graph_assembly.h"
#include "compiler/program/program_inputs.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/session.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// All that the programs of a plan are written from. The request and what it points
// to must outlive it.
struct ProgramPlan {
  const CompileRequest* request = nullptr;
  std::shared_ptr<const PlanBodies> bodies;
  DeviceMesh mesh;
  StagePlacement placement;                                   // of virtual stages
  std::vector<std::vector<StageRun>> stages;                  // per virtual stage
  std::vector<SharedParameter> shared;                        // on these
  std::vector<std::shared_ptr<const CompiledBody>> compiled;  // per bound body of these
  std::shared_ptr<const HomePlan> homes;                      // null: no node says any
  std::shared_ptr<const ParkingPlan> parking;                 // ProgramInputs

  ProgramInputs inputs() const;
  // With so many micro-batches; with the pairs of overlap=ep.
  PipelineSchedule Schedule(int64_t micro_batches) const;
  // Says what holds for the whole graph, before its programs are written.
  void Announce(GraphAssembly* assembly) const;
  // Appends the programs of all stages, announced. Errors: a program that the request's check
  // refuses.
  absl::Status WriteAll(const PipelineSchedule& schedule, BlockCatalogue* catalogue,
                        GraphAssembly* assembly) const;

 private:
  PipelineSchedule Order(int64_t micro_batches) const;
};

// Whether the program of `stage` is that of the stage before but for where it is: in
// the middle of the pipeline, with equal layers on both, and equal transfers.
bool LikeTheStageBefore(const ProgramInputs& inputs, int64_t stage);

// Errors: those of the passes over bodies, and kResourceExhausted if the request's
// check refuses what a stage always holds.
absl::StatusOr<ProgramPlan> PlanPrograms(const CompileRequest& request, Session& session,
                                         const PassObserver& observer);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_PLAN_H_
