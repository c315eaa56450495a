#ifndef PLANCAST_COMPILER_SHARDING_STAGE_STATE_H_
#define PLANCAST_COMPILER_SHARDING_STAGE_STATE_H_

#include <cstdint>
#include <vector>

#include "compiler/program/program_inputs.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/optimizer/newton_schulz.h"
#include "compiler/sharding/sharded_stage.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Parameters of a stage whose tensors live in equal places, in elements on one device.
struct StateGroup {
  ParameterHomes homes;  // of any bucket
  int64_t parameters = 0;
  int64_t products = 0;        // StageContents::ProductParameters
  ElementsByAxes cut = {};     // BodyState::cut_parameters
  ElementsByCopies own = {};   // BodyState::own
  int64_t kept = 0;            // of how many the device keeps the optimizer's state
  KeptMatrices matrices = {};  // of these, those that Muon updates as matrices

  // Whether parameters with these homes, of any bucket, are among them.
  bool Takes(const ParameterHomes& other) const { return homes == other.OfAnyBucket(); }
};
// In the order of the stage. `sharded`: null where no body of the stage is sharded.
std::vector<StateGroup> StateGroupsOf(const ProgramInputs& inputs, const StageContents& contents,
                                      const ShardedStage* sharded);
// Whether gradients of such parameters are reduced, and parameters gathered, by the blocks of
// their own bodies.
bool InBodies(const ParameterHomes& homes, const ShardedStage* sharded);
// Of one repeat of a run, the parameters whose gradients are not.
int64_t WholeParameters(const StageContents& contents, const StageRun& run,
                        const ShardedStage* sharded);

// Parameters, gradients and optimizer state that a device of `stage` holds.
void FillStaticBytes(const ProgramInputs& inputs, int64_t stage, Program* program);
// Where what the stage shards in its bodies is known; null: nothing.
void FillStaticBytes(const ProgramInputs& inputs, const StageContents& contents,
                     const ShardedStage* bodies, Program* program);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_STAGE_STATE_H_
