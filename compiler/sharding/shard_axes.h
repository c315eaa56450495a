#ifndef PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_
#define PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_

#include <cstdint>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/lower/body_state.h"
#include "strategy/plan_options.h"

namespace plancast {

// The mesh axes that a parameter has copies on, as sharded data parallelism uses them.
struct ShardAxes {
  std::vector<int> shard;      // each rank keeps a part
  std::vector<int> replica;    // copies of the whole shard group
  std::vector<int> secondary;  // innermost of `shard`: what is kept after forward is cut over these
  // Of `shard` those over which gradients are summed; along the others they are alike, and each
  // rank takes its part of them.
  std::vector<int> summed;
  int64_t shards = 1, secondaries = 1;

  int64_t sliced(const DeviceMesh& mesh) const { return shards / mesh.SizeOf(summed); }
  friend bool operator==(const ShardAxes& a, const ShardAxes& b) {
    return a.shard == b.shard && a.replica == b.replica && a.secondary == b.secondary &&
           a.summed == b.summed;
  }
};
// `copies`: DataAxes, or those of a weight that some of them cut.
ShardAxes ShardAxesOf(const DeviceMesh& mesh, const PlanOptions& options,
                      const std::vector<int>& copies);
// Under a home over axes of its own.
ShardAxes ShardAxesOver(const DeviceMesh& mesh, const PlanOptions& options,
                        const std::vector<int>& over, const CopyAxes& copies);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_
