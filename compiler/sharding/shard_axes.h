#ifndef PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_
#define PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/int128.h"
#include "cluster/device_mesh.h"
#include "compiler/lower/body_state.h"
#include "graph/collective_kind.h"
#include "strategy/plan_options.h"

namespace plancast {

// The mesh axes that a parameter has copies on, as sharded data parallelism uses them.
struct ShardAxes {
  std::vector<int> shard;      // each rank keeps a part, or one all
  std::vector<int> replica;    // copies of the whole shard group
  std::vector<int> secondary;  // innermost of `shard`: what is kept after forward is cut over these
  // Of `shard` those over which gradients are summed; along the others they are alike, and each
  // rank takes its part of them.
  std::vector<int> summed;
  int64_t shards = 1, secondaries = 1;  // equal parts
  // One rank of `shard` keeps all: what all sum is reduced to it, what they need is broadcast.
  bool rooted = false, here = true;  // and whether it is of these devices

  // What a device keeps of so many elements.
  int64_t Kept(int64_t elements) const { return here ? CeilDiv(elements, shards) : 0; }
  CollectiveKind sums() const {
    return rooted ? CollectiveKind::kReduce : CollectiveKind::kReduceScatter;
  }
  CollectiveKind gathers() const {
    return rooted ? CollectiveKind::kBroadcast : CollectiveKind::kAllGather;
  }
  // Whether sums over the ranks of `shard` are summed over others: only who keeps some has them.
  bool SumsReplicas() const { return here && !replica.empty(); }
  std::string KeyText() const;
  int64_t sliced(const DeviceMesh& mesh) const { return rooted ? 1 : shards / mesh.SizeOf(summed); }
  friend bool operator==(const ShardAxes& a, const ShardAxes& b) {
    return a.shard == b.shard && a.replica == b.replica && a.secondary == b.secondary &&
           a.summed == b.summed && a.rooted == b.rooted && a.here == b.here;
  }
};
// `copies`: DataAxes, or those of a weight that some of them cut.
ShardAxes ShardAxesOf(const DeviceMesh& mesh, const PlanOptions& options,
                      const std::vector<int>& copies);
// Under a home over axes of its own.
ShardAxes ShardAxesOver(const DeviceMesh& mesh, const PlanOptions& options, const HomeAxes& over,
                        const CopyAxes& copies);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARD_AXES_H_
