#ifndef PLANCAST_COMPILER_SHARDING_OPTIMIZER_OPTIMIZER_STEP_H_
#define PLANCAST_COMPILER_SHARDING_OPTIMIZER_OPTIMIZER_STEP_H_

#include <cstdint>
#include <vector>

#include "compiler/lower/lower_block.h"
#include "compiler/sharding/optimizer/newton_schulz.h"
#include "graph/dtype.h"
#include "graph/execution/execution_graph.h"
#include "strategy/software_profile.h"

namespace plancast {

// The norm of the gradients, by which they are clipped.
struct GradientNorm {
  std::vector<int> axes;        // each device sums its own over these
  bool joins_programs = false;  // all programs' together
  // Or stage by stage (StepTime::kPostValidated): a stage that has its own, out-port 0, waits for
  // what the stages before it found, in-port 0, and updates. What it does not do is clip: a norm
  // that is too large for that is found later, and the update undone.
  bool chained = false;
  // Or it is nobody's business: nothing is clipped or looked at.
  bool none = false;
  // Norms of single tensors (LAMB's) are summed over these: ranks that have parts of them.
  std::vector<int> of_tensors;
};

// The end of the iteration on one device: gradient norm, overflow
// check, clipping, update. A copy of the gradients in the optimizer's own type, where
// that is not theirs, lives through it.
struct ShardedUpdate {
  // Elements that are updated in one way.
  struct Share {
    int64_t elements = 0;
    bool rests_as_master = false;  // there is no copy in the model's type to be written
    // The processors of the host clip and update, in fp32, behind what the device updates.
    bool on_host = false;
    KeptMatrices matrices = {};  // of Muon
  };
  std::vector<Share> shares;               // of all elements; empty: one, on the device
  int64_t tensors = 0;                     // that these are of
  bool elsewhere = false;                  // or other devices update all of them
  int64_t copied_back = 0;                 // bytes of parameters, after the update on the host
  int64_t freed_gradients = 0;             // bytes of gradients that are given up at the end
  int64_t freed_shards = 0;                // and of their shards
  MemoryPool pool = MemoryPool::kCompute;  // which these are of
};
BlockTemplate OptimizerStep(const SoftwareProfile& profile, DType dtype, int64_t elements,
                            const GradientNorm& norm, const ShardedUpdate& sharded = {});
// Whether ranks sum the norm of gradients in it.
bool StepHasNorm(const SoftwareProfile& profile, const GradientNorm& norm);
// Whether a step depends on all gradients of the plan: on their norm, or that none overflowed.
bool ChecksGradients(const SoftwareProfile& profile, DType dtype);
// Whether it reads copies of gradients in another type (main_grad_dtype), tensor by tensor
// (ShardedUpdate::tensors) for as long as it takes.
bool CopiesGradients(const SoftwareProfile& profile);
// Copies gradients to an optimizer on the host.
BlockTemplate GradientsToHost(int64_t bytes);
// Its beginning: gradients set to zero.
BlockTemplate ZeroGradients(const SoftwareProfile& profile, int64_t elements);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_OPTIMIZER_OPTIMIZER_STEP_H_
