#ifndef PLANCAST_COMPILER_GRADIENT_FLOW_H_
#define PLANCAST_COMPILER_GRADIENT_FLOW_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/program_writer.h"
#include "compiler/stage_program.h"

namespace plancast {

// Slots of the rendezvous (GraphAssembly::Join): the two of the gradients, then
// those of the transfers between stages.
inline constexpr int64_t kOptimizerSlot = 0, kTiedSlot = 1, kTransferSlots = 2;

// What a stage holds, counted in elements on one device.
class StageContents {
 public:
  StageContents(const ProgramInputs& inputs, int64_t stage) : in_(inputs), stage_(stage) {}

  int32_t chunks() const;
  int64_t VirtualStage(int32_t chunk) const { return chunk * in_.options->pp + stage_; }
  const std::vector<StageRun>& Runs(int32_t chunk) const {
    return (*in_.stages)[VirtualStage(chunk)];
  }
  const CompiledBody& BodyOf(const StageRun& run) const { return *(*in_.bodies)[run.bound_body]; }
  // Of one copy of the run's body. A tied parameter whose two users share the
  // stage is counted with the later one only.
  int64_t Parameters(const StageRun& run) const;
  int64_t ReducedOverData(const StageRun& run) const;
  int64_t TotalParameters() const;
  // Of TotalParameters, those in matrices of products (BodyState).
  int64_t ProductParameters() const;
  // Of weights that a data-parallel axis cuts, summed over the stage.
  ElementsByAxes CutParameters() const;
  // Gradients partial over other axes, summed over the stage.
  ElementsByAxes ReducedOverOthers() const;

 private:
  int64_t TiedHere(const StageRun& run) const;

  const ProgramInputs& in_;
  const int64_t stage_;
};

// Gradients and parameters of one stage on their way over the data-parallel
// axes: buckets reduced behind the backward pass or all at its end, parameters
// of a sharded optimizer gathered before the first forward pass or at the end,
// then the optimizer step.
class GradientFlow {
 public:
  // Layers of a run whose parameters one gather instance brings.
  struct GatheredPiece {
    int32_t instance;
    int64_t layer_begin, count;
  };

  GradientFlow(const ProgramInputs& inputs, int64_t stage, const StageContents& contents,
               ProgramWriter* writer);

  // At the start of the iteration: overlapped gathers, gradients set to zero.
  void Begin();
  // The pieces of a run that its first forward pass waits for; empty after.
  std::vector<GatheredPiece> TakeGathered(const StageRun& run);

  // How many layers of the run the last backward pass does between two
  // reductions; all of them if reductions do not overlap.
  int64_t LayersPerPiece(const StageRun& run, bool last) const;
  // `count` layers of the run have run backward for the last time.
  void NoteLastBackward(const StageRun& run, int64_t count);
  // A chunk's last backward pass is over.
  void EndChunk();

  // Remaining reductions, tied gradients, optimizer, gathers.
  void Finish();

 private:
  int64_t BucketElements() const;
  int64_t LayersPerBucket(int64_t elements_per_layer, int64_t layers) const;
  int MessagesFor(int64_t elements) const;
  void ReducePending(bool whole);
  // `cut` is among the elements.
  int32_t Gather(int64_t elements, const ElementsByAxes& cut, int messages,
                 const std::vector<Join>& joins);
  void GatherAhead();
  void ReduceOthers(std::vector<Join>* joins);
  void ReduceTied(std::vector<Join>* joins);
  void Update(const std::vector<Join>& joins);

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const DeviceMesh& mesh_;
  const int64_t stage_;
  const StageContents& contents_;
  ProgramWriter& writer_;
  const int64_t parameters_;
  const bool reduces_, gathers_, overlap_grad_, overlap_param_;
  int64_t pending_ = 0;         // elements whose reduction is due
  ElementsByAxes pending_cut_;  // and those of weights that a data-parallel axis cuts
  std::vector<int32_t> reductions_;
  std::map<std::pair<int, int64_t>, std::vector<GatheredPiece>> gathered_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_GRADIENT_FLOW_H_
