#include "interop/astra/workload_from_traces.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

using Kind = ChakraTrace::Kind;

absl::Status Bad(const ChakraTrace::Node& node, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node.id, " (`", node.name.substr(0, 80), "`) ", why));
}

absl::StatusOr<AstraCollective> CollectiveOf(const ChakraTrace::Node& node) {
  switch (node.collective) {
    case chakra::ALL_REDUCE:
      return AstraCollective::kAllReduce;
    case chakra::ALL_GATHER:
      return AstraCollective::kAllGather;
    case chakra::REDUCE_SCATTER:
      return AstraCollective::kReduceScatter;
    case chakra::ALL_TO_ALL:
      return AstraCollective::kAllToAll;
    case chakra::BROADCAST:
      return AstraCollective::kReplay;
    default:
      return Bad(node, absl::StrCat("is a ", chakra::CollectiveCommType_Name(node.collective),
                                    ", which ASTRA-sim does not have"));
  }
}

// What a node is to ASTRA-sim, groups and dimensions left out.
absl::StatusOr<AstraNode> NodeFrom(const ChakraTrace::Node& node) {
  AstraNode made;
  made.id = node.id;
  made.on_cpu = node.on_cpu;
  made.duration_us = node.duration_us;
  made.bytes = node.bytes;
  made.tag = node.tag;
  made.priority = node.priority;
  switch (node.kind) {
    case Kind::kNothing:
      return made;
    case Kind::kCompute:
      made.kind = AstraNodeKind::kCompute;
      made.ops = std::max<int64_t>(node.ops, 0);
      made.bytes = std::max<int64_t>(node.tensor_bytes, 0);
      return made;
    case Kind::kMemory:
      return Bad(node, "loads or stores remote memory, which this mode does not have");
    case Kind::kSend:
      made.kind = AstraNodeKind::kSend;
      made.peer = node.dst;
      return made;
    case Kind::kRecv:
      made.kind = AstraNodeKind::kRecv;
      made.peer = node.src;
      return made;
    case Kind::kCollective:
      made.kind = AstraNodeKind::kCollective;
      break;
  }
  ASSIGN_OR_RETURN(made.collective, CollectiveOf(node));
  return made;
}

}  // namespace

absl::StatusOr<AstraProgram> AstraCustomFrom(const ChakraTrace& trace) {
  AstraProgram program;
  for (const ChakraTrace::Node& node : trace.nodes) {
    ASSIGN_OR_RETURN(const AstraNode made, NodeFrom(node));
    if (made.kind == AstraNodeKind::kCollective) {
      return Bad(node, "is a collective inside a custom collective");
    }
    program.Add(made, node.deps);
  }
  return program;
}

absl::StatusOr<AstraWorkload> AstraWorkloadFrom(const std::vector<const ChakraTrace*>& traces,
                                                const CommGroups& groups) {
  AstraWorkload workload;
  absl::flat_hash_map<int64_t, int32_t> group_of;
  for (const auto& [id, ranks] : groups) {
    group_of[id] = static_cast<int32_t>(workload.groups.size());
    workload.groups.push_back({id, ranks});
  }
  absl::flat_hash_map<const ChakraTrace*, int32_t> program_of;
  absl::flat_hash_map<std::vector<bool>, int32_t> dims_of;
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    const auto [known, added] =
        program_of.try_emplace(traces[rank], static_cast<int32_t>(workload.programs.size()));
    workload.program_of.push_back(known->second);
    if (!added) continue;
    AstraProgram program;
    program.nodes.reserve(traces[rank]->nodes.size());
    for (const ChakraTrace::Node& node : traces[rank]->nodes) {
      ASSIGN_OR_RETURN(AstraNode made, NodeFrom(node), _ << "rank " << rank);
      if (node.kind == Kind::kCollective && node.group != 0) {
        const auto group = group_of.find(node.group);
        if (group == group_of.end()) {
          return Bad(node, absl::StrCat("is of group `", node.group, "`, which is not there"));
        }
        made.group = group->second;
      }
      if (!node.dims.empty()) {
        const auto [dims, is_new] =
            dims_of.try_emplace(node.dims, static_cast<int32_t>(workload.involved.size()));
        if (is_new) workload.involved.push_back(node.dims);
        made.dims = dims->second;
      }
      program.Add(made, node.deps);
    }
    workload.programs.push_back(std::move(program));
  }
  return workload;
}

}  // namespace plancast
