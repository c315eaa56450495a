#ifndef PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_
#define PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_

#include <cstdint>
#include <vector>

#include "cluster/device_mesh.h"
#include "strategy/plan_options.h"

namespace plancast {

// The mesh axes that a parameter has copies on, as sharded data parallelism uses them.
struct ShardAxes {
  std::vector<int> shard;      // each rank keeps a part
  std::vector<int> replica;    // copies of the whole shard group
  std::vector<int> secondary;  // innermost of `shard`: what is kept after forward is cut over these
  int64_t shards = 1, secondaries = 1;

  friend bool operator==(const ShardAxes& a, const ShardAxes& b) {
    return a.shard == b.shard && a.replica == b.replica && a.secondary == b.secondary;
  }
};
// `copies`: DataAxes, or those of a weight that some of them cut.
ShardAxes ShardAxesOf(const DeviceMesh& mesh, const PlanOptions& options,
                      const std::vector<int>& copies);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_
