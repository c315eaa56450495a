#ifndef PLANCAST_COLLECTIVES_NCCL_GRAPHS_H_
#define PLANCAST_COLLECTIVES_NCCL_GRAPHS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/topology/nccl_version.h"
#include "cluster/topology/path_type.h"

// What NCCL's graph search finds and its tuner reads. GB/s are 1e9 bytes per
// second, as NCCL counts them; latencies are µs.

namespace plancast {

// How a channel visits the GPUs of a host; the values are NCCL's own.
enum class NcclPattern : uint8_t {
  kNone = 0,
  kBalancedTree = 1,  // the first two GPUs share the traffic with the network
  kSplitTree = 2,     // one GPU receives from it, the other sends
  kTree = 3,          // the first GPU does both
  kRing = 4,
  kNvls = 5,
  kCollNetDirect = 6,
};

// One channel inside one host.
struct NcclChannel {
  // Network devices by their number in the topology: traffic enters by the first
  // and leaves by the second. -1 on a single host.
  std::array<int, 2> nets = {-1, -1};
  // Ranks of the host in the order of the ring or chain; of NVLS the head alone.
  std::vector<int> gpus;
};

// What the search found for one pattern; no channels: it does not exist.
struct NcclGraph {
  NcclPattern pattern = NcclPattern::kNone;
  int cross_nic = 0;  // 2: rings change interface between hosts
  int num_channels = 0;
  double bw_intra = 0, bw_inter = 0;  // of one channel, GB/s
  double latency_inter = 0;           // of the network devices, µs
  PathType type_intra = PathType::kLoc, type_inter = PathType::kLoc;
  bool same_channels = true;  // all channels visit the GPUs alike
  int num_hops = 0;
  std::vector<NcclChannel> channels;  // num_channels of them
};

enum class CpuArch : uint8_t { kX86, kPower, kArm, kMixed };
enum class CpuVendor : uint8_t { kIntel, kAmd, kZhaoxin, kMixed, kUndefined };

// A communicator as the tuner sees it: every node searched alike, the result
// agreed between the nodes. A node is a set of GPUs joined without the network: a
// host, a part of it, or an NVLink domain.
struct NcclCommunicator {
  NcclVersion version = kLatestNccl;
  int nodes = 1;
  int ranks = 1;
  int max_local_ranks = 1;                                     // of the node with the most
  int min_compute_capability = 0, max_compute_capability = 0;  // 90: Hopper
  CpuArch cpu_arch = CpuArch::kX86;
  CpuVendor cpu_vendor = CpuVendor::kIntel;

  NcclGraph ring, tree, collnet_chain, collnet_direct, nvls;

  bool has_nvswitch = false;
  bool nvls_supported = false;     // NVSwitch, Hopper or later, enough ranks in a node
  bool collnet_supported = false;  // SHARP
  int collnet_nodes_threshold = 2;

  int channels = 0;               // after connecting: those that collectives use
  int nvls_channels = 0;          // blocks of a kernel that reduces in switches
  int nvls_heads = 0;             // distinct first GPUs of the NVLS channels
  int p2p_channels = 0;           // for sends and receives
  int p2p_channels_per_peer = 0;  // of those, the most that one peer gets
  bool all_nvlink = false;        // every pair of ranks of a node is joined by NVLink
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_GRAPHS_H_
