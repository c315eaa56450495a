#ifndef PLANCAST_COMPILER_SHARDING_SHARD_BLOCK_H_
#define PLANCAST_COMPILER_SHARDING_SHARD_BLOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/lower/lower_block.h"
#include "compiler/sharding/shard_plan.h"
#include "strategy/software_profile.h"

namespace plancast {

// What one repeat of a body does for sharded data parallelism beside its own tasks. Of shards
// that live in host memory, weights are copied in before they are gathered, gradients out once
// they are reduced.
//
// Blocks hand gathers in flight on through ports behind those of their own: port i of
// `ports` is the (i+1)-th gather that compute will wait for. A block whose unit had to
// be gathered waits for the first and shifts the rest; a gather that it begins becomes
// the last. The last port of a block that may gather says when its compute may begin.
struct ShardedStep {
  const ShardUnit* unit = nullptr;  // that the body is in
  bool backward = false;
  int ports = 0;
  bool tells_begin = false;
  const ShardUnit* gather = nullptr;  // begins to be gathered with this repeat
  const ShardUnit* own = nullptr;    // was gathered for this repeat; null: is there, or has nothing
  const ShardUnit* frees = nullptr;  // gathered parameters given up when the repeat is over
  bool keeps_part = false;           // of `frees`, from the forward to the backward pass

  // Backward: gradients.
  const ShardUnit* reduce = nullptr;  // reduced when the repeat is over
  // Elements of gradients that are given up by it, as blocks have made them.
  std::vector<int64_t> reduced_gradients;
  const ShardUnit* reduced_before = nullptr;  // whose reduction the repeat before began
  bool ends_reductions = false;               // the last of the pass: waited for and given up
  bool accumulates = false;                   // onto gradients of micro-batches before
  bool makes_shards = false;                  // reduced gradients are allocated
  // Per tensor of the body: its gradients are none of the unit's; null: all are.
  const std::vector<bool>* whole = nullptr;
};

// How the framework does it.
struct ShardStyle {
  ShardTypes types;
  ShardCut cut = ShardCut::kParameter;
  bool secondary = false;     // backward passes gather what forward passes kept a part of
  double whole_gradient = 0;  // bytes of an element of gradients before they are reduced
  int64_t in_step = 1;        // ranks that compute in step with each rank (tensor parallelism)
  // Host time, in launches: of a rank's part of a list (ShardUnit::Part::lists), and of the hooks
  // of a parameter.
  double launches_per_part = 1, hook_calls = 0;
};

// The block with what `step` says.
BlockTemplate ShardBlock(const BlockTemplate& block, const ShardedStep& step,
                         const ShardStyle& style);

// The gather of a unit by itself, ahead of a pass.
BlockTemplate GatherAhead(const ShardUnit& unit, bool backward, const ShardStyle& style);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARD_BLOCK_H_
