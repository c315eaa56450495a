#ifndef PLANCAST_GRAPH_EXECUTION_MEMORY_OVERHEAD_H_
#define PLANCAST_GRAPH_EXECUTION_MEMORY_OVERHEAD_H_

#include <cstdint>
#include <vector>

namespace plancast {

// What a device holds beyond the bytes of live tensors; figures come from a
// software profile (proto/software_profile.proto documents each). Sizes are
// bytes; a zero switches its part off.

// A caching allocator: small blocks share segments of one size, middling ones
// segments of another, a large block has its own. Segments are never given back.
struct AllocatorParams {
  int64_t block_bytes = 0;           // sizes of blocks are multiples of this
  int64_t small_bytes = 0;           // blocks up to this size are small
  int64_t small_segment_bytes = 0;   // what small blocks share
  int64_t large_bytes = 0;           // blocks from this size are large
  int64_t large_multiple_bytes = 0;  // sizes of their segments are multiples of this
  int64_t middle_segment_bytes =
      0;                     // what the blocks in between share, in what large ones left too
  double fragmentation = 0;  // held but unusable, as a share of the segments
  // One segment a pool, which grows page by page (of the sizes above) and gives pages back
  // where there is no room.
  bool expandable_segments = false;
  bool stream_pools = false;   // tensors of other streams have pools of their own
  bool state_in_step = false;  // the first step allocates the optimizer's state
};

// Buffers of a communication library: per communicator, and per channel and
// peer for each protocol.
struct CommunicatorParams {
  int64_t fixed_bytes = 0;
  int64_t channels = 0;
  int64_t simple_bytes = 0, ll_bytes = 0, ll128_bytes = 0;
  int64_t multiple_bytes = 0;  // the buffers of a channel and peer take a multiple of this
  int64_t send_bytes = 0;      // beside them, per channel and peer
  int64_t ring_peers = 0;      // whom a member receives from in rings, trees and messages, at most
  int64_t all_to_all_peers = 0, all_to_all_channels = 0;
};

struct MemoryOverhead {
  AllocatorParams allocator;
  CommunicatorParams communicators;
  int64_t context_bytes = 0;  // driver context, loaded kernels, library workspaces
  // What the device offers (Device::usable_bytes). Where a program comes near it, blocks
  // are placed one by one instead of counting `fragmentation`. 0: not known.
  int64_t capacity_bytes = 0;
  // On a machine with several types of devices: what those of [begin, end) offer instead.
  // Ascending; empty: all are alike.
  struct Capacity {
    int64_t begin = 0, end = 0, bytes = 0;
  };
  std::vector<Capacity> capacities;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXECUTION_MEMORY_OVERHEAD_H_
