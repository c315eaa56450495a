#ifndef PLANCAST_COMPILER_STAGE_PROGRAM_H_
#define PLANCAST_COMPILER_STAGE_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "compiler/program/block_catalogue.h"
#include "compiler/program/graph_assembly.h"
#include "compiler/program/program_inputs.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "compiler/schedule/repeated_steps.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/program_outline.h"

namespace plancast {

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
void OutlineStageProgram(const ProgramInputs& inputs, int64_t stage, const ShortOrder& order,
                         BlockCatalogue* catalogue, ProgramOutline* outline);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_STAGE_PROGRAM_H_
