#include "collectives/nccl/tuner_costs.h"

#include <algorithm>
#include <limits>

#include "base/floor_log2.h"
#include "collectives/nccl/tuner_pair.h"

namespace plancast {
namespace {

bool IsLatest(const NcclPair& c) { return c.comm.version == NcclVersion::k2_30; }

// Ranks of a node, on average.
double PerNode(const NcclPair& c) { return static_cast<double>(c.comm.ranks) / c.comm.nodes; }

bool DoesKind(const NcclPair& c) {
  switch (c.algorithm) {
    case NcclAlgorithm::kRing:
      return true;
    case NcclAlgorithm::kPat:
      return c.gathers();
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kCollNetDirect:
      return c.gathers() || c.all_reduce();
    default:
      return c.all_reduce();
  }
}

// Latencies and bandwidths aside: whether NCCL enables the pair here.
bool Enabled(const NcclPair& c) {
  const NcclCommunicator& comm = c.comm;
  if (c.graph.num_channels == 0 || !DoesKind(c)) return false;
  const bool tree_or_ring =
      c.algorithm == NcclAlgorithm::kTree || c.algorithm == NcclAlgorithm::kRing;
  if (!tree_or_ring && !c.simple()) return false;
  switch (c.algorithm) {
    case NcclAlgorithm::kNvls:
      if (!comm.nvls_supported || (comm.nodes > 1 && !comm.collnet_supported)) return false;
      // Without reductions in the network only a node gathers in its switches.
      if (c.gathers() && comm.nodes > 1 && comm.max_local_ranks > comm.nvls_heads) return false;
      break;
    case NcclAlgorithm::kNvlsTree:
      if (!comm.nvls_supported || comm.nodes == 1) return false;
      break;
    case NcclAlgorithm::kCollNetDirect:
      if (!comm.collnet_supported || !comm.has_nvswitch) return false;
      if (c.gathers() && comm.max_local_ranks > comm.nvls_heads) return false;
      break;
    case NcclAlgorithm::kCollNetChain:
      if (!comm.collnet_supported) return false;
      break;
    case NcclAlgorithm::kPat:
      if (comm.nodes != comm.ranks) return false;
      break;
    default:
      break;
  }
  if (c.protocol != Protocol::kLl128) return true;
  const int capability = comm.min_compute_capability;
  const PathType farthest = capability >= 90 ? PathType::kPxn : PathType::kPxb;
  return c.graph.type_inter <= farthest && c.graph.type_intra <= PathType::kNvb &&
         (capability == comm.max_compute_capability || capability >= 90) && capability >= 70;
}

// What switches of a node reduce and multicast, in GB/s of a channel.
double NvlsChannel(const NcclPair& c) {
  const NcclGraph& graph = c.graph;
  const bool tree = c.algorithm == NcclAlgorithm::kNvlsTree;
  const bool two_nodes = c.comm.nodes <= 2;
  if (!IsLatest(c)) {
    if (tree) return std::min(graph.bw_intra, two_nodes ? graph.bw_inter : graph.bw_inter / 2);
    if (c.all_reduce()) return std::min(graph.bw_intra, graph.bw_inter);
    return std::min(graph.bw_intra * (PerNode(c) - 1) / PerNode(c), 0.9 * graph.bw_inter);
  }
  double intra = graph.bw_intra * c.generation().nvls_efficiency;
  if (graph.num_channels >= 2) intra *= (graph.num_channels - 1.0) / graph.num_channels;
  intra *= c.all_reduce() ? 2 : (PerNode(c) - 1) / PerNode(c);
  const double inter = graph.bw_inter * (two_nodes && tree ? 2 : 1);
  const double most =
      tree ? c.generation().nvls_tree[c.nodes_index()] : std::numeric_limits<double>::infinity();
  return std::min({intra, inter, most});
}

double CollNetDirect(const NcclPair& c, double bus) {
  if (c.gathers()) {
    return PerNode(c) * std::min(c.graph.bw_intra, 0.9 * c.graph.bw_inter);
  }
  double factor = PerNode(c) / c.graph.num_channels;
  factor -= (factor - 1) / 2;
  bus /= factor;
  return c.comm.min_compute_capability >= 90 ? bus * 0.85 : bus;
}

double LowLatencyMax(const NcclPair& c) {
  if (c.comm.nodes == 1) return c.generation().ll_max[0];
  // Over the network it is the processor that counts, not the GPU: the older row
  // for Intel, the next for AMD and for unlike hosts.
  const bool amd = c.comm.cpu_arch == CpuArch::kX86 &&
                   (c.comm.cpu_vendor == CpuVendor::kAmd || c.comm.cpu_vendor == CpuVendor::kMixed);
  return c.tables.generations[amd ? 1 : 0].ll_max[c.nodes_index()];
}

double RingBandwidth(const NcclPair& c, double bus, double ll_max) {
  if (c.protocol == Protocol::kLl) return std::min(ll_max, bus * 0.5);
  if (c.protocol == Protocol::kLl128) {
    return std::min(bus * 0.92, c.graph.num_channels * c.generation().ring_ll128[c.nodes_index()]);
  }
  return bus;
}

double Bandwidth(const NcclPair& c) {
  const NcclCommunicator& comm = c.comm;
  const bool collnet =
      c.algorithm == NcclAlgorithm::kCollNetDirect || c.algorithm == NcclAlgorithm::kCollNetChain;
  double bus =
      c.graph.num_channels * (comm.nodes <= 2 || collnet ? c.graph.bw_intra : c.graph.bw_inter);
  const double ring_ratio = static_cast<double>(comm.ranks) / RingSteps(c.kind, comm.ranks);
  switch (c.algorithm) {
    case NcclAlgorithm::kRing:
      return RingBandwidth(c, bus, LowLatencyMax(c)) * ring_ratio;
    case NcclAlgorithm::kTree:
      bus = NcclTreeBandwidth(c, bus, LowLatencyMax(c));
      return (c.graph.pattern == NcclPattern::kTree ? bus * 0.85 : bus) * 0.5;
    case NcclAlgorithm::kPat:
      return bus * 0.75;
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kNvlsTree:
      bus = c.graph.num_channels * NvlsChannel(c);
      if (c.gathers()) return bus;
      return bus * (IsLatest(c) ? ring_ratio : 5.0 / 6);
    case NcclAlgorithm::kCollNetDirect:
      bus = CollNetDirect(c, bus);
      return c.gathers() ? bus : bus * 0.5;
    case NcclAlgorithm::kCollNetChain:
      return bus * 0.5;
  }
  return 0;
}

// The proxy that hands each step of a ring to the network, µs.
double NetworkOverhead(const NcclPair& c) {
  if (c.comm.nodes == 1) return 0;
  const bool amd = c.comm.cpu_arch == CpuArch::kX86 && c.comm.cpu_vendor == CpuVendor::kAmd;
  return (amd ? 2.0 : 1.0) * (c.simple() ? 3 : 1);
}

double Latency(const NcclPair& c) {
  const NcclCommunicator& comm = c.comm;
  const double base = c.BaseLatency();
  const double intra = c.Latency(c.algorithm, c.InsideNode());
  const double inter =
      c.Latency(PerNode(c) == 1 ? NcclAlgorithm::kTree : c.algorithm, NcclTunerTables::kNet) +
      c.graph.latency_inter * (c.simple() ? 2 : 1);  // Simple flushes what it received
  const int others = comm.ranks / comm.nodes - 1;
  const int levels = FloorLog2(comm.nodes);
  switch (c.algorithm) {
    case NcclAlgorithm::kRing:
      return NcclRingLatency(c, std::max(intra, NetworkOverhead(c)), inter,
                             (c.all_reduce() ? 2 : 1) * (comm.nodes - 1));
    case NcclAlgorithm::kTree:
      return base + 2 * (others * intra + levels * inter);
    case NcclAlgorithm::kCollNetDirect:
      return base + 2 * (std::min(1, others) * intra + others * 0.4) + inter;
    case NcclAlgorithm::kCollNetChain:
      return base + 2 * others * intra + inter;
    case NcclAlgorithm::kNvls:
      return intra + (comm.nodes > 1 ? inter : 0);
    case NcclAlgorithm::kNvlsTree:
      return base + intra + 2 * levels * inter;
    case NcclAlgorithm::kPat:
      return base + levels * inter / 3.5 + comm.ranks * 2.8;
  }
  return base;
}

}  // namespace

int RingSteps(ProgramKind kind, int ranks) {
  switch (kind) {
    case ProgramKind::kAllReduce:
      return 2 * (ranks - 1);
    case ProgramKind::kAllGather:
    case ProgramKind::kReduceScatter:
      return ranks - 1;
    default:
      return ranks;
  }
}

const NcclGraph& NcclGraphOf(const NcclCommunicator& communicator, NcclAlgorithm algorithm) {
  switch (algorithm) {
    case NcclAlgorithm::kTree:
    case NcclAlgorithm::kPat:
      return communicator.tree;
    case NcclAlgorithm::kRing:
      return communicator.ring;
    case NcclAlgorithm::kCollNetDirect:
      return communicator.collnet_direct;
    case NcclAlgorithm::kCollNetChain:
      return communicator.collnet_chain;
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kNvlsTree:
      return communicator.version == NcclVersion::k2_17 ? communicator.ring : communicator.nvls;
  }
  return communicator.ring;
}

NcclCost NcclCostOf(const NcclCommunicator& communicator, const NcclTunerTables& tables,
                    ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol) {
  if (communicator.version == NcclVersion::k2_17) {
    return NcclCostOf217(communicator, tables, kind, algorithm, protocol);
  }
  const NcclPair pair = {communicator, tables,    NcclGraphOf(communicator, algorithm),
                         kind,         algorithm, protocol};
  if (!Enabled(pair)) return {};
  return {Latency(pair), Bandwidth(pair)};
}

}  // namespace plancast
