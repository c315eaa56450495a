#ifndef PLANCAST_EXECUTOR_MEMORY_COMMUNICATORS_H_
#define PLANCAST_EXECUTOR_MEMORY_COMMUNICATORS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"

namespace plancast {

// One communicator of a device: the group it belongs to along `axes`, and how
// many members it receives from over how many channels.
struct Communicator {
  std::vector<int> axes;
  int64_t size = 1;  // members
  int64_t peers = 0, channels = 0;
};

// The communicators behind these entries of ExecutionGraph::comms. Libraries make
// one when a group is first used and keep it: communications over the same axes
// share it, and groups of one have none.
std::vector<Communicator> CommunicatorsOf(const ExecutionGraph& graph,
                                          absl::Span<const int32_t> comms,
                                          const CommunicatorParams& params);
// Behind these, on `mesh`.
std::vector<Communicator> CommunicatorsOf(const DeviceMesh& mesh,
                                          absl::Span<const CommSpec* const> comms,
                                          const CommunicatorParams& params);

int64_t CommunicatorBytes(const CommunicatorParams& params, const Communicator& communicator);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_COMMUNICATORS_H_
