#ifndef PLANCAST_COMPILER_PROGRAM_STAGE_CONTENTS_H_
#define PLANCAST_COMPILER_PROGRAM_STAGE_CONTENTS_H_

#include <cstdint>
#include <vector>

#include "compiler/bind/bind.h"
#include "compiler/lower/body_state.h"
#include "compiler/program/program_inputs.h"

namespace plancast {

// What a stage holds, counted in elements on one device.
class StageContents {
 public:
  StageContents(const ProgramInputs& inputs, int64_t stage);

  int64_t stage() const { return stage_; }
  int32_t chunks() const { return static_cast<int32_t>(in_.placement->chunks()); }
  int64_t VirtualStage(int32_t chunk) const { return in_.placement->At(stage_, chunk); }
  const std::vector<StageRun>& Runs(int32_t chunk) const {
    return (*in_.stages)[VirtualStage(chunk)];
  }
  // Calls `use(run)` for all of them, in the order of chunks.
  template <typename Use>
  void ForEachRun(Use use) const {
    for (int32_t chunk = 0; chunk < chunks(); ++chunk) {
      for (const StageRun& run : Runs(chunk)) use(run);
    }
  }
  const CompiledBody& BodyOf(const StageRun& run) const { return *(*in_.bodies)[run.bound_body]; }
  // The first layer of a repeat of the run's body, which may join several: repeats are counted
  // from StageRun::layer_begin on.
  int64_t LayerAt(const StageRun& run, int64_t repeat) const {
    return run.layer_begin + (repeat - run.layer_begin) * BodyOf(run).blocks.forward.block.layers;
  }
  // Calls `use(part)` for the parameters of one repeat of the run's body by their homes; those
  // of a body with a tied parameter have one.
  template <typename Use>
  void ForEachPart(const StageRun& run, Use use) const {
    const BodyState& state = BodyOf(run).state;
    if (in_.homes == nullptr) {
      use(HomePart{plan_homes_, &state, nullptr});
    } else {
      in_.homes->ForEachPart(run, state, use);
    }
  }
  // Per tensor of the run's body: its gradients are not sharded; null: all are, or none.
  const std::vector<bool>* WholeGradients(const StageRun& run) const {
    return in_.homes == nullptr ? nullptr : in_.homes->WholeGradients(run);
  }
  // Calls `use(homes)` for those of the stage's parameters, which may come again.
  template <typename Use>
  void ForEachHome(Use use) const {
    if (in_.homes == nullptr) return use(plan_homes_);
    ForEachRun([&](const StageRun& run) {
      ForEachPart(run, [&](const HomePart& part) { use(part.homes); });
    });
  }
  // Trained ones of one repeat of the run's body, less those that it borrows.
  int64_t Parameters(const StageRun& run) const;
  // Of one part.
  int64_t Parameters(const StageRun& run, const HomePart& part) const;
  int64_t ReducedOverData(const StageRun& run, const HomePart& part) const;
  int64_t TotalParameters() const;
  // The same of parameters that are not trained.
  FrozenParameters TotalFrozen() const;
  // Adds those of a part, in all repeats of the run.
  void AddFrozen(const StageRun& run, const HomePart& part, FrozenParameters* total) const;
  // What software holds beside state throughout the iteration: workspaces of libraries,
  // CompiledBody::held_bytes of each repeat, held_shared_bytes of each body.
  int64_t HeldBytes() const;
  // Of TotalParameters, those in matrices of products (BodyState).
  int64_t ProductParameters() const;
  // Whether other axes cut the batch of any gradient (BodyState::reduced_over_batch).
  bool ReducesOverBatch() const;
  // Of the parameters of one repeat, trained or frozen, those that its stage holds with a later
  // user (SharedParameter).
  int64_t BorrowedBy(const StageRun& run) const { return Borrows(run, /*frozen=*/false); }
  int64_t FrozenBorrowedBy(const StageRun& run) const { return Borrows(run, /*frozen=*/true); }
  bool borrows() const { return !borrowed_.empty(); }
  // The run's layers have backward passes.
  bool HasBackward(const StageRun& run) const { return !BodyOf(run).plan.ends_backward(); }

 private:
  struct Borrowed {
    int segment = 0;
    int64_t layer = 0, elements = 0;
    bool frozen = false;
  };

  int64_t Borrows(const StageRun& run, bool frozen) const;

  const ProgramInputs& in_;
  const int64_t stage_;
  const ParameterHomes plan_homes_;
  std::vector<Borrowed> borrowed_;
};

// Of copies of the model: the trained elements that each set of stages holds, less shared ones.
ElementsByStages CopiedParameters(const ProgramInputs& inputs);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_STAGE_CONTENTS_H_
