#include "compiler/sharding/shard_axes.h"

#include <algorithm>

#include "compiler/bind/plan_mesh.h"

namespace plancast {

ShardAxes ShardAxesOf(const DeviceMesh& mesh, const PlanOptions& options,
                      const std::vector<int>& copies) {
  ShardAxes result;
  const int64_t group = options.hsdp == 0 ? options.dp : options.hsdp;
  int64_t dp = 1, ranks = 1;
  for (int a = mesh.num_axes() - 1; a >= 0; --a) {
    if (mesh.size(a) == 1) continue;
    const bool of_dp = mesh.root(a) == "dp";
    if (of_dp) dp *= mesh.size(a);
    const bool inside = !of_dp || dp <= group;
    if (inside && IsDataAxis(mesh, a)) ranks *= mesh.size(a);
    if (std::find(copies.begin(), copies.end(), a) == copies.end()) continue;
    (inside ? result.shard : result.replica).push_back(a);
    if (inside && options.reshard_ranks > 0 && ranks <= options.reshard_ranks) {
      result.secondary.push_back(a);
    }
  }
  for (std::vector<int>* axes : {&result.shard, &result.replica, &result.secondary}) {
    std::reverse(axes->begin(), axes->end());
  }
  result.shards = mesh.SizeOf(result.shard);
  result.secondaries = mesh.SizeOf(result.secondary);
  return result;
}

}  // namespace plancast
