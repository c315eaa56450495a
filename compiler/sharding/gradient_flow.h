#ifndef PLANCAST_COMPILER_SHARDING_GRADIENT_FLOW_H_
#define PLANCAST_COMPILER_SHARDING_GRADIENT_FLOW_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/lower/body_state.h"
#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/sharded_stage.h"

namespace plancast {

// Slots of the rendezvous (GraphAssembly::Join): the two of the gradients, then those of the
// transfers between stages, then further ones of gradients that stages share.
inline constexpr int64_t kOptimizerSlot = 0, kTiedSlot = 1, kTransferSlots = 2;

// Whether gradients of parameters that are whole on a device are made by backward passes
// and given up by the optimizer (SoftwareProfile::fresh_gradients).
bool MakesFreshGradients(const PlanOptions& options, const SoftwareProfile& profile);

// Parameters, gradients and optimizer state that a device of `stage` holds.
void FillStaticBytes(const ProgramInputs& inputs, int64_t stage, Program* program);

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
               const ShardedStage* sharded, ProgramWriter* writer);

  // At the start of the iteration: overlapped gathers, gradients set to zero.
  void Begin();
  // The pieces of a run that its first forward pass waits for; empty after.
  std::vector<GatheredPiece> TakeGathered(const StageRun& run);

  // How many layers of the run a backward pass that reduces gradients does between
  // two reductions; all of them if reductions do not overlap.
  int64_t LayersPerPiece(const StageRun& run, bool reduces) const;
  // A pass whose body blocks reduce gradients themselves ended with `instance`.
  void NoteReductions(int32_t instance) { reductions_.push_back(instance); }
  // `count` layers of the run have run backward in such a pass.
  void NoteBackward(const StageRun& run, int64_t count);
  // Such a pass of a chunk is over, its last or (sync=each) one of several.
  void EndChunk(bool last);

  // Remaining reductions, gradients that stages share, optimizer, gathers.
  void Finish();

 private:
  // Of how many parameters the device keeps the state.
  int64_t Kept() const;
  // Of gradients that backward passes have made.
  int64_t FreshBytes() const;
  int64_t BucketElements() const;
  int64_t LayersPerBucket(int64_t elements_per_layer, int64_t layers) const;
  int MessagesFor(int64_t elements) const;
  void ReducePending(bool whole);
  // Copies so many gradients to an optimizer on the host, behind an instance.
  void CopyToHost(int64_t elements, int32_t behind);
  // Those that no reduction brings there.
  int64_t LeftForHost() const;
  // `cut` is among the elements.
  int32_t Gather(int64_t elements, const ElementsByAxes& cut, int messages,
                 const std::vector<Join>& joins);
  void GatherAhead();
  void ReduceOthers(std::vector<Join>* joins);
  void ReduceShared(std::vector<Join>* joins);
  void Update(const std::vector<Join>& joins);

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const DeviceMesh& mesh_;
  const int64_t stage_;
  const StageContents& contents_;
  const ShardedStage* const sharded_;  // null: bodies know nothing of data parallelism
  ProgramWriter& writer_;
  const int64_t parameters_;
  const bool reduces_, shares_, gathers_, overlap_grad_, overlap_param_;
  const bool host_updates_;       // the optimizer lives on the host
  int64_t pending_ = 0;           // elements whose reduction is due
  ElementsByAxes pending_cut_;    // and those of weights that a data-parallel axis cuts
  ElementsByAxes pending_batch_;  // and BodyState::reduced_over_batch
  std::vector<int32_t> reductions_;
  std::map<std::pair<int, int64_t>, std::vector<GatheredPiece>> gathered_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_GRADIENT_FLOW_H_
