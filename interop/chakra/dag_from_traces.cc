#include "interop/chakra/dag_from_traces.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

using Kind = ChakraTrace::Kind;

constexpr int64_t kPsPerUs = 1'000'000;

absl::Status Bad(const ChakraTrace::Node& node, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node.id, " (`", node.name.substr(0, 80), "`) ", why));
}

// Seconds of operations and bytes at the device's peaks, whichever take longer.
int64_t RooflinePs(const ChakraTrace::Node& node, const DeviceType& device) {
  double seconds = 0;
  if (node.ops > 0 && device.bf16_flops > 0) {
    seconds = static_cast<double>(node.ops) / device.bf16_flops;
  }
  if (node.tensor_bytes > 0 && device.memory_bytes_per_s > 0) {
    seconds = std::max(seconds, static_cast<double>(node.tensor_bytes) / device.memory_bytes_per_s);
  }
  return RoundToPicoseconds(std::min(seconds, 1e6));
}

// Kind and bytes in the unit of CollectiveKind.
absl::Status FillCollective(const ChakraTrace::Node& node, int64_t members, DagTask& task) {
  task.bytes = node.bytes;
  switch (node.collective) {
    case chakra::ALL_REDUCE:
      task.collective = CollectiveKind::kAllReduce;
      return absl::OkStatus();
    case chakra::ALL_GATHER:
    case chakra::GATHER:
      task.collective =
          node.collective == chakra::GATHER ? CollectiveKind::kGather : CollectiveKind::kAllGather;
      if (__builtin_mul_overflow(node.bytes, members, &task.bytes)) {
        return Bad(node, "gathers too many bytes");
      }
      return absl::OkStatus();
    case chakra::REDUCE_SCATTER:
    case chakra::REDUCE_SCATTER_BLOCK:
      task.collective = CollectiveKind::kReduceScatter;
      return absl::OkStatus();
    case chakra::ALL_TO_ALL:
      task.collective = CollectiveKind::kAllToAll;
      return absl::OkStatus();
    case chakra::BROADCAST:
      task.collective = CollectiveKind::kBroadcast;
      return absl::OkStatus();
    case chakra::REDUCE:
      task.collective = CollectiveKind::kReduce;
      return absl::OkStatus();
    case chakra::SCATTER:
      task.collective = CollectiveKind::kScatter;
      return absl::OkStatus();
    case chakra::BARRIER:
      task.collective = CollectiveKind::kAllReduce;
      task.bytes = 4;
      return absl::OkStatus();
    default:
      return Bad(node, absl::StrCat("is a ", chakra::CollectiveCommType_Name(node.collective),
                                    ", which is made of sends and receives: write it as these"));
  }
}

}  // namespace

absl::StatusOr<DagJob> DagJobFrom(const std::vector<const ChakraTrace*>& traces,
                                  const CommGroups& groups, const DeviceType& device) {
  DagJob job;
  std::map<int64_t, int32_t> group_of;  // 0: all ranks
  job.groups.emplace_back();
  for (int64_t r = 0; r < static_cast<int64_t>(traces.size()); ++r) job.groups[0].push_back(r);
  group_of[0] = 0;
  for (const auto& [id, ranks] : groups) {
    group_of[id] = static_cast<int32_t>(job.groups.size());
    job.groups.push_back(ranks);
    std::sort(job.groups.back().begin(), job.groups.back().end());
  }
  absl::flat_hash_map<const ChakraTrace*, int32_t> dag_of;
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    const auto [known, added] =
        dag_of.try_emplace(traces[rank], static_cast<int32_t>(job.dags.size()));
    job.dag_of.push_back(known->second);
    if (!added) continue;
    RankDag dag;
    for (const ChakraTrace::Node& node : traces[rank]->nodes) {
      DagTask task;
      task.id = node.id;
      task.bytes = node.bytes;
      task.tag = node.tag;
      switch (node.kind) {
        case Kind::kNothing:
          break;
        case Kind::kCompute:
        case Kind::kMemory:
          task.kind = node.on_cpu ? DagTask::Kind::kHost : DagTask::Kind::kKernel;
          task.bytes = 0;
          task.duration_ps =
              node.duration_us > 0 ? node.duration_us * kPsPerUs : RooflinePs(node, device);
          break;
        case Kind::kSend:
        case Kind::kRecv:
          task.kind = node.kind == Kind::kSend ? DagTask::Kind::kSend : DagTask::Kind::kRecv;
          task.peer = node.kind == Kind::kSend ? node.dst : node.src;
          break;
        case Kind::kCollective: {
          task.kind = DagTask::Kind::kCollective;
          if (std::find(node.dims.begin(), node.dims.end(), false) != node.dims.end() &&
              node.group == 0) {
            return StatusBuilder(Bad(node,
                                     "is over some dimensions of a network (`involved_dim`), "
                                     "which the machine does not have. Give it a group, "
                                     "`pg_name`."))
                   << "rank " << rank;
          }
          const auto group = group_of.find(node.group);
          if (group == group_of.end()) return Bad(node, "is of a group that is not there");
          task.group = group->second;
          RETURN_IF_ERROR(
              FillCollective(node, static_cast<int64_t>(job.groups[task.group].size()), task))
              << "rank " << rank;
          break;
        }
      }
      dag.Add(task, node.deps);
    }
    job.dags.push_back(std::move(dag));
  }
  return job;
}

}  // namespace plancast
