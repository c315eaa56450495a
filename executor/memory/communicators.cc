#include "executor/memory/communicators.h"

#include <algorithm>

namespace plancast {

std::vector<Communicator> CommunicatorsOf(const ExecutionGraph& graph,
                                          absl::Span<const int32_t> comms,
                                          const CommunicatorParams& params) {
  std::vector<const CommSpec*> specs;
  const DeviceMesh* mesh = &graph.mesh;
  for (int32_t comm : comms) {
    specs.push_back(&graph.comms[comm]);
    if (graph.comms[comm].stage_mesh >= 0) mesh = &graph.MeshOf(graph.comms[comm]);
  }
  return CommunicatorsOf(*mesh, specs, params);
}

std::vector<Communicator> CommunicatorsOf(const DeviceMesh& mesh,
                                          absl::Span<const CommSpec* const> comms,
                                          const CommunicatorParams& params) {
  std::vector<Communicator> communicators;
  for (const CommSpec* spec : comms) {
    const CommSpec& comm = *spec;
    auto known = std::find_if(communicators.begin(), communicators.end(),
                              [&](const Communicator& k) { return k.axes == comm.axes; });
    if (known == communicators.end()) {
      Communicator added;
      added.axes = comm.axes;
      added.size = comm.kind == CollectiveKind::kReshard ? 2 : mesh.SizeOf(comm.axes);
      if (added.size == 1) continue;
      known = communicators.insert(communicators.end(), std::move(added));
    }
    const bool all_to_all = comm.kind == CollectiveKind::kAllToAll;
    const int64_t most = all_to_all ? params.all_to_all_peers : params.ring_peers;
    known->peers = std::max(known->peers, std::min(known->size - 1, most));
    known->channels =
        std::max(known->channels, all_to_all ? params.all_to_all_channels : params.channels);
  }
  return communicators;
}

int64_t CommunicatorBytes(const CommunicatorParams& params, const Communicator& communicator) {
  int64_t buffers = params.simple_bytes + params.ll_bytes + params.ll128_bytes;
  if (params.multiple_bytes > 1) {
    buffers = (buffers + params.multiple_bytes - 1) / params.multiple_bytes * params.multiple_bytes;
  }
  return params.fixed_bytes +
         communicator.channels * communicator.peers * (buffers + params.send_bytes);
}

}  // namespace plancast
