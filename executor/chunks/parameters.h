#ifndef PLANCAST_EXECUTOR_CHUNKS_PARAMETERS_H_
#define PLANCAST_EXECUTOR_CHUNKS_PARAMETERS_H_

#include <cstdint>

namespace plancast {

// What a protocol makes of links and thread blocks. The defaults are links as they
// are: no overhead, messages whole, queues without end.
struct ChunkParameters {
  int64_t start_ps = 0;  // launch and handshake, before the first step
  // Of every message beyond the latency of its links, inside a node and between
  // nodes.
  int64_t node_hop_ps = 0, network_hop_ps = 0;
  double latency_stretch = 1;  // multiplies both, and the latency of the links
  // Payload over what a link carries while it flows.
  double node_efficiency = 1, bridge_efficiency = 1, network_efficiency = 1;
  // What one thread block sends at most: a rate, or its share of a rate at which the
  // whole buffer is worked through. 0: no limit.
  int64_t block_bytes_per_s = 0;
  double buffer_bytes_per_s = 0;
  int64_t network_block_bytes_per_s = 0;  // instead, to another node; 0: the same
  int64_t local_bytes_per_s = 0;  // what it copies or reduces inside a rank; 0: takes nothing

  // A turn of the loop moves chunks of at most so many bytes; 0: one turn moves all.
  int64_t chunk_bytes = 0;
  // A message longer than this is handed on in equal pieces; 0: whole.
  int64_t slice_bytes = 0;
  // What the queue between two thread blocks holds; 0: anything.
  int64_t fifo_bytes = 0;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_PARAMETERS_H_
