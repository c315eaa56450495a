#ifndef PLANCAST_COMPILER_STAGE_PROGRAM_H_
#define PLANCAST_COMPILER_STAGE_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/bind.h"
#include "compiler/block_catalogue.h"
#include "compiler/body_plan.h"
#include "compiler/graph_assembly.h"
#include "compiler/lower_block.h"
#include "compiler/schedule.h"
#include "compiler/synchronise.h"
#include "graph/execution_graph.h"
#include "graph/program_outline.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// A body after all per-body passes.
struct CompiledBody {
  BodyPlan plan;
  BodyBlocks blocks;
  BodyState state;
  std::vector<int64_t> out_port_bytes;  // of one device, per out-port
  bool out_ports_replicated = true;     // every tensor-parallel rank holds all of them
  // Throughout the iteration, each copy and all together (op_memory.h).
  int64_t held_bytes = 0, held_shared_bytes = 0;
  bool is_layer = false;  // one of a list of modules
  // Data-parallel ranks exchange something inside of it, or keep more or less of a tensor
  // where there are more of them: it is of no use to plans with another number.
  bool hangs_on_data_ranks = false;
  // That this is a variant of, which shares tensors with its neighbours; null: of none.
  const CompiledBody* original = nullptr;
};

// Everything that the programs of all stages are made from.
struct ProgramInputs {
  const DeviceMesh* mesh = nullptr;
  const std::vector<std::vector<StageRun>>* stages = nullptr;  // per virtual stage
  const PlanOptions* options = nullptr;
  const SoftwareProfile* profile = nullptr;
  DType dtype = DType::kBf16;
  const std::vector<std::shared_ptr<const CompiledBody>>* bodies = nullptr;  // per bound body
  // Elements on one device of parameters that a later segment shares with an
  // earlier one: reduced between the two stages that hold them.
  int64_t tied_elements = 0;
  int first_tied_segment = -1;
  const std::vector<Segment>* segments = nullptr;  // of the model
};

// Parameters, gradients and optimizer state that a device of `stage` holds.
void FillStaticBytes(const ProgramInputs& inputs, int64_t stage, Program* program);

// Whether compute waits for transfers between stages, sends included.
bool TransfersBlock(const PlanOptions& options, const SoftwareProfile& profile);

// Writes the program of pipeline stage `stage`: its schedule with pipeline
// communication, gradient reduction, optimizer, and static memory. It joins the
// graph of `assembly`; with nullptr it is a draft (ProgramWriter) in `program`,
// which must be empty.
void BuildStageProgram(const ProgramInputs& inputs, int64_t stage,
                       const std::vector<ScheduleStep>& schedule, BlockCatalogue* catalogue,
                       GraphAssembly* assembly);
void DraftStageProgram(const ProgramInputs& inputs, int64_t stage,
                       const std::vector<ScheduleStep>& schedule, BlockCatalogue* catalogue,
                       Program* program);
// The same without what instances wait for, each part that passes share written once;
// blocks are numbers of the catalogue.
void OutlineStageProgram(const ProgramInputs& inputs, int64_t stage,
                         const std::vector<ScheduleStep>& schedule, BlockCatalogue* catalogue,
                         ProgramOutline* outline);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_STAGE_PROGRAM_H_
