#ifndef PLANCAST_TESTS_COLLECTIVES_NCCL_COMMUNICATORS_H_
#define PLANCAST_TESTS_COLLECTIVES_NCCL_COMMUNICATORS_H_

#include "collectives/nccl/graphs.h"

namespace plancast {

inline NcclGraph MadeUpGraph(NcclPattern pattern, int channels, double intra, double inter,
                             PathType type_inter = PathType::kPix) {
  NcclGraph graph;
  graph.pattern = pattern;
  graph.num_channels = channels;
  graph.bw_intra = intra;
  graph.bw_inter = inter;
  graph.type_intra = PathType::kNvl;
  graph.type_inter = type_inter;
  return graph;
}

// DGX H100 as NCCL 2.27 and 2.30 search it: on one node 12 rings of 30 GB/s and
// NVLS 8 of 40/60, on more 8 rings of 48 GB/s, one for each interface, and NVLS
// 8 of 40/48.
inline NcclCommunicator DgxH100(int nodes, NcclVersion version = NcclVersion::k2_30) {
  NcclCommunicator comm;
  comm.version = version;
  comm.nodes = nodes;
  comm.ranks = 8 * nodes;
  comm.max_local_ranks = 8;
  comm.min_compute_capability = comm.max_compute_capability = 90;
  comm.has_nvswitch = comm.nvls_supported = comm.all_nvlink = true;
  if (nodes == 1) {
    comm.ring = MadeUpGraph(NcclPattern::kRing, 12, 30, 30);
    comm.tree = MadeUpGraph(NcclPattern::kBalancedTree, 12, 30, 30);
    comm.nvls = MadeUpGraph(NcclPattern::kNvls, 8, 40, 60);
    comm.channels = 24;
    comm.p2p_channels = comm.p2p_channels_per_peer = 32;
  } else {
    comm.ring = MadeUpGraph(NcclPattern::kRing, 8, 48, 48);
    comm.ring.cross_nic = 2;
    comm.ring.same_channels = false;
    comm.tree = MadeUpGraph(NcclPattern::kTree, 8, 48, 48);
    comm.nvls = MadeUpGraph(NcclPattern::kNvls, 8, 40, 48);
    comm.channels = comm.p2p_channels = 16;
    comm.p2p_channels_per_peer = 4;
  }
  comm.nvls_channels = 16;
  comm.nvls_heads = 8;
  return comm;
}

// DGX A100: 12 rings of 20 GB/s on one node, 8 of 24 GB/s on more.
inline NcclCommunicator DgxA100(int nodes, NcclVersion version = NcclVersion::k2_30) {
  NcclCommunicator comm;
  comm.version = version;
  comm.nodes = nodes;
  comm.ranks = 8 * nodes;
  comm.max_local_ranks = 8;
  comm.min_compute_capability = comm.max_compute_capability = 80;
  comm.cpu_vendor = CpuVendor::kAmd;
  comm.has_nvswitch = comm.all_nvlink = true;
  if (nodes == 1) {
    comm.ring = MadeUpGraph(NcclPattern::kRing, 12, 20, 20);
    comm.tree = MadeUpGraph(NcclPattern::kBalancedTree, 12, 20, 20);
    comm.channels = 24;
    comm.p2p_channels = comm.p2p_channels_per_peer = 32;
  } else {
    comm.ring = MadeUpGraph(NcclPattern::kRing, 8, 24, 24, PathType::kPxb);
    comm.tree = MadeUpGraph(NcclPattern::kBalancedTree, 8, 30, 24, PathType::kPxb);
    comm.channels = comm.p2p_channels = 16;
    comm.p2p_channels_per_peer = 2;
  }
  return comm;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COLLECTIVES_NCCL_COMMUNICATORS_H_
