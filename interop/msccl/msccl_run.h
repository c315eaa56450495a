#ifndef PLANCAST_INTEROP_MSCCL_MSCCL_RUN_H_
#define PLANCAST_INTEROP_MSCCL_MSCCL_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "collectives/synthesis/link_graph.h"
#include "executor/chunks/execute_chunks.h"

namespace plancast {

// What MSCCL's interpreter makes of a machine's links with a protocol: chunks of four
// steps of NCCL's buffers (Simple) or one (LL, LL128), handed on in halves (Simple),
// queues of eight steps; flags on the wire (LL, LL128); the launch and the hops of
// NCCL's rings, and what one channel moves at most (NCCL's tuner tables of 2.17, the
// nearest to the 2.12 that MSCCL is made of).
// InvalidArgument for other protocols.
absl::StatusOr<ChunkParameters> MscclParameters(const Machine& machine,
                                                const std::string& protocol);

// The wires of a topology: `bytes_per_s` for each unit of width, messages arrive
// `latency_ps` after they left.
absl::StatusOr<ChunkNetwork> NetworkOfGraph(const LinkGraph& graph, int64_t bytes_per_s,
                                            int64_t latency_ps);

struct MscclRun {
  int64_t finish_ps = 0;
  std::vector<int64_t> rank_finish_ps;
  // bytes / time, and as nccl-tests scale it to the links' rate; bytes/s.
  double algorithm_bytes_per_s = 0, bus_bytes_per_s = 0;
  struct Busiest {
    std::string name;
    double bytes = 0;  // payload
    double busy = 0;   // part of finish_ps
  };
  // The link that was busy for the largest part of the time, and the thread block, if
  // there is a limit to what one sends.
  Busiest busiest_link, busiest_block;
  int64_t messages = 0;  // pieces simulated
  std::vector<ChunkMessage> timeline;
};

// Runs a program, rank r at place r, on `bytes` of its buffer as nccl-tests count
// them. InvalidArgument where the network has too few places or does not join them.
absl::StatusOr<MscclRun> RunProgram(const ChunkProgram& program, const ChunkNetwork& network,
                                    int64_t bytes, const ChunkParameters& parameters,
                                    bool timeline);

// Messages on one track for each sending GPU and channel, as a Chrome trace.
std::string MessageTrace(const MscclRun& run);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_MSCCL_RUN_H_
