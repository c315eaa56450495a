#ifndef PLANCAST_COMPILER_STAGE_CROSSINGS_H_
#define PLANCAST_COMPILER_STAGE_CROSSINGS_H_

#include <cstdint>
#include <vector>

#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"
#include "graph/execution/execution_graph.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// The data that micro-batches of one chunk send or receive in one phase. Its
// block is made at the first transfer: blocks are numbered in order of use.
struct Crossing {
  bool crosses = false;  // else the data stays on this stage, or there is none
  bool silent = false;   // between stages, and there is none: no gradient
  Phase phase = Phase::kForward;
  int64_t border = 0;  // the virtual stage before the border
  int64_t offset = 0;  // stages from sender to receiver
  StreamKind stream = StreamKind::kCompute;
  int64_t slots = 0;  // of the rendezvous, from micro-batch 0 on
  int32_t block = -1;
  int ports = 0;
};

struct ChunkCrossings {
  int64_t v = 0;                 // its virtual stage
  Crossing receive[2], send[2];  // by phase
};

// Of each chunk of a stage.
std::vector<ChunkCrossings> CrossingsOf(const ProgramInputs& inputs, const StageContents& contents);

// For each chunk the first that does the same: equal layers between equal transfers. `apart`: no
// other does.
std::vector<size_t> AlikeChunks(const ProgramInputs& inputs, const StageContents& contents,
                                const std::vector<ChunkCrossings>& chunks, bool apart);

// Whether compute waits for all transfers between stages, sends included.
bool TransfersBlock(const PlanOptions& options, const SoftwareProfile& profile);

// For which steps of a stage's schedule it does: all, none, or those of warm-up and flush, before
// and after forward and backward passes take turns.
class BlockedSteps {
 public:
  BlockedSteps(const PlanOptions& options, const SoftwareProfile& profile,
               const std::vector<ScheduleStep>& schedule);
  bool OfSend(size_t step) const { return step < warm_up_ || step >= flush_; }
  // A step's input is received together with what the step before it sends.
  bool OfReceive(size_t step) const { return OfSend(step > 0 ? step - 1 : 0); }

 private:
  size_t warm_up_ = 0, flush_;  // so many steps; from this step on
};

// Writes what a stage sends and receives.
class StageTransfers {
 public:
  StageTransfers(const ProgramInputs& inputs, int64_t stage, ProgramWriter* writer)
      : in_(inputs), stage_(stage), writer_(*writer) {}

  // From here on compute waits for transfers, or does not.
  void Block(bool blocks) { blocking_ = blocks; }

  // A step's result, ready with instance `feeder`.
  void Send(Crossing* crossing, const ScheduleStep& step, int32_t feeder);
  // A step's input; the instance that brings it.
  int32_t Receive(Crossing* crossing, const ScheduleStep& step);

 private:
  int32_t BlockOf(const Crossing& crossing, bool sends);
  void Meet(int32_t index, const Crossing& crossing, const ScheduleStep& step);

  const ProgramInputs& in_;
  const int64_t stage_;
  bool blocking_ = false;
  ProgramWriter& writer_;
};

// The first slot of rendezvous behind those of all crossings, of shared gradients and their norm.
int64_t FirstFreeSlot(const ProgramInputs& inputs);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_STAGE_CROSSINGS_H_
