#include "compiler/sharding/shard_axes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/bind/plan_mesh.h"

namespace plancast {

std::string ShardAxes::KeyText() const {
  return absl::StrCat(absl::StrJoin(shard, ","), "/", absl::StrJoin(summed, ","), "+",
                      absl::StrJoin(replica, ","),
                      !rooted ? ""
                      : here  ? " here"
                              : " there");
}

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
  result.summed = result.shard;
  return result;
}

ShardAxes ShardAxesOver(const DeviceMesh& mesh, const PlanOptions& options, const HomeAxes& over,
                        const CopyAxes& copies) {
  const auto has = [](const std::vector<int>& axes, int axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  ShardAxes result;
  int64_t data = 1;
  for (int a = mesh.num_axes() - 1; a >= 0; --a) {
    const bool summed = has(copies.summed, a), of_data = IsDataAxis(mesh, a);
    if (of_data) data *= mesh.size(a);
    if (!summed && !has(copies.alike, a)) continue;
    if (!has(over.axes, a)) {
      result.replica.push_back(a);
      continue;
    }
    result.shard.push_back(a);
    if (summed) result.summed.push_back(a);
    // The ranks of a tensor are nearer than those of data.
    const bool near = !of_data || data <= options.reshard_ranks;
    if (options.reshard_ranks > 0 && near) result.secondary.push_back(a);
  }
  for (std::vector<int>* axes :
       {&result.shard, &result.replica, &result.secondary, &result.summed}) {
    std::reverse(axes->begin(), axes->end());
  }
  result.rooted = over.rooted();
  result.here = over.here;
  if (result.rooted) result.secondary.clear();
  result.shards = result.rooted ? 1 : mesh.SizeOf(result.shard);
  result.secondaries = mesh.SizeOf(result.secondary);
  return result;
}

}  // namespace plancast
