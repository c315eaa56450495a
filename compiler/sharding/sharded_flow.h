#ifndef PLANCAST_COMPILER_SHARDING_SHARDED_FLOW_H_
#define PLANCAST_COMPILER_SHARDING_SHARDED_FLOW_H_

#include <cstdint>
#include <vector>

#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/sharded_passes.h"
#include "compiler/sharding/sharded_stage.h"

namespace plancast {

// Passes of one stage whose blocks gather their parameters, and reduce their gradients, themselves.
class ShardedFlow {
 public:
  ShardedFlow(const ProgramInputs& inputs, const StageContents& contents, ProgramWriter* writer)
      : in_(inputs),
        writer_(*writer),
        stage_(inputs, contents),
        passes_(inputs, contents, stage_, writer) {}

  const ShardedStage& stage() const { return stage_; }
  // Whether passes of this phase run so.
  bool Runs(Phase phase) const { return phase != Phase::kForward || stage_.gathers(); }
  // `first`: of its copy of the model; `last`: no pass of the chunk makes gradients of weights
  // after it.
  const ShardedPasses::Pass& Of(const ScheduleStep& step, bool first, bool last) {
    return passes_.Of(step.chunk, step.phase, first, last);
  }
  // Appends what is gathered ahead of a pass. Returns what the pass's first layers wait for beside
  // what feeds them, which comes to the first `own_ports` ports. `went_back`: the instance that a
  // pass of weight gradients is behind, or -1.
  std::vector<Join> Begin(const ScheduleStep& step, const ShardedPasses::Pass& pass,
                          int32_t went_back);

 private:
  const ProgramInputs& in_;
  ProgramWriter& writer_;
  ShardedStage stage_;
  ShardedPasses passes_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARDED_FLOW_H_
