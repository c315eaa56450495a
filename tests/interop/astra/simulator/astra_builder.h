#ifndef PLANCAST_TESTS_INTEROP_ASTRA_SIMULATOR_ASTRA_BUILDER_H_
#define PLANCAST_TESTS_INTEROP_ASTRA_SIMULATOR_ASTRA_BUILDER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "interop/astra/simulator/simulate_astra.h"

namespace plancast {

inline AstraNode AstraKernel(int64_t us) {
  AstraNode node;
  node.kind = AstraNodeKind::kCompute;
  node.duration_us = us;
  return node;
}

inline AstraNode AstraComm(AstraCollective collective, int64_t bytes, int32_t group = -1) {
  AstraNode node;
  node.kind = AstraNodeKind::kCollective;
  node.collective = collective;
  node.bytes = bytes;
  node.group = group;
  return node;
}

inline AstraNode AstraMessage(bool send, int64_t peer, int64_t tag, int64_t bytes) {
  AstraNode node;
  node.kind = send ? AstraNodeKind::kSend : AstraNodeKind::kRecv;
  node.peer = peer;
  node.tag = tag;
  node.bytes = bytes;
  return node;
}

// Nodes in a row, each after the one before if `chain`.
inline AstraProgram AstraRow(const std::vector<AstraNode>& nodes, bool chain = true) {
  AstraProgram program;
  for (size_t i = 0; i < nodes.size(); ++i) {
    AstraNode node = nodes[i];
    node.id = i;
    std::vector<int32_t> after;
    if (chain && i > 0) after = {static_cast<int32_t>(i) - 1};
    program.Add(node, after);
  }
  return program;
}

inline AstraWorkload OnAllRanks(AstraProgram program, int64_t npus) {
  AstraWorkload workload;
  workload.programs = {std::move(program)};
  workload.program_of.assign(npus, 0);
  return workload;
}

// 50 GiB/s and 500 ns a hop.
inline AstraNetwork OneDim(AstraWiring wiring, int64_t npus, bool aware) {
  return {{{wiring, npus, 50, 500}}, aware, 1};
}

inline AstraSystem SystemOf(std::vector<AstraAlgorithm::Kind> kinds) {
  AstraSystem system;
  for (const AstraAlgorithm::Kind kind : kinds) {
    for (auto* list :
         {&system.all_reduce, &system.all_gather, &system.reduce_scatter, &system.all_to_all}) {
      list->push_back({kind});
    }
  }
  system.all_to_all.assign(kinds.size(), {AstraAlgorithm::Kind::kDirect});
  system.local_bw_aware = true;
  system.endpoint_delay_ns = 1;
  system.local_mem_gb_per_s = 1e9;
  return system;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_INTEROP_ASTRA_SIMULATOR_ASTRA_BUILDER_H_
