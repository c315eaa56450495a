#ifndef PLANCAST_COMPILER_LOWER_OP_MEMORY_H_
#define PLANCAST_COMPILER_LOWER_OP_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/body/body_plan.h"
#include "compiler/lower/buffers.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// What software holds for an op beside the tensors of its rule
// (SoftwareProfile::OpMemory).

// The tasks of a block that run a step of its plan; -1: none.
struct StepTasks {
  int first = -1, last = -1;
};

struct HeldMemory {
  int64_t each = 0, shared = 0;
};

// The steps of a block; of one half of a backward pass, those of the half before and behind it
// (null: there is none).
struct PhaseSteps {
  const std::vector<PlanStep>& own;
  bool backward = false;
  const std::vector<PlanStep>*before = nullptr, *behind = nullptr;
};

// Writes the memory events of one phase: what is kept lives from the forward pass of
// its op (or the second one, if the op runs again) to the end of its backward pass, both halves
// of it, workspaces as long as their step. `tasks`: per step.
void AddOpMemory(const LowerContext& context, const PhaseSteps& steps,
                 const std::vector<StepTasks>& tasks, const std::string& path,
                 BlockBuilder* builder);

// Leaves nothing of buffers in `kept_bytes` (per buffer: until `steps`, of a backward pass, read
// it) that only ops read which drop them.
void DropBuffers(const LowerContext& context, const std::vector<PlanStep>& steps,
                 const Buffers& buffers, std::vector<int64_t>* kept_bytes);

// Values that are alive from the forward to the backward phase: `saved` by rules, and what
// software holds beside (SoftwareProfile::OpMemory::pinned_inputs).
std::vector<int> WithHeldInputs(const LowerContext& context, const BodyPlan& plan,
                                std::vector<int> saved);

// Bytes that a stage holds throughout the iteration for each repeat of the body, and once
// for all of them.
HeldMemory HeldBy(const LowerContext& context, const Place& place);

// `d layers.*.fc1.y`: a tensor of the body at `path`, or a gradient, with its module.
std::string NameIn(const std::string& path, absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_OP_MEMORY_H_
