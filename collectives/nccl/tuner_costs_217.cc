#include <algorithm>

#include "base/floor_log2.h"
#include "collectives/nccl/tuner_costs.h"
#include "collectives/nccl/tuner_pair.h"

namespace plancast {
namespace {

bool Enabled(const NcclPair& c) {
  const NcclCommunicator& comm = c.comm;
  if (c.graph.num_channels == 0) return false;
  switch (c.algorithm) {
    case NcclAlgorithm::kRing:
      break;
    case NcclAlgorithm::kTree:
      if (!c.all_reduce()) return false;
      break;
    case NcclAlgorithm::kNvls:
      if (!c.simple() || !comm.nvls_supported || comm.nodes > 1) return false;
      if (!c.all_reduce() && !c.gathers()) return false;
      break;
    case NcclAlgorithm::kCollNetDirect:
      if (!c.simple() || !c.all_reduce() || !comm.collnet_supported || !comm.has_nvswitch) {
        return false;
      }
      break;
    case NcclAlgorithm::kCollNetChain:
      if (!c.simple() || !c.all_reduce() || !comm.collnet_supported) return false;
      break;
    default:
      return false;  // later inventions
  }
  if (c.protocol != Protocol::kLl128) return true;
  const int capability = comm.min_compute_capability;
  const PathType farthest = capability >= 90 ? PathType::kPxn : PathType::kPxb;
  return c.graph.type_inter <= farthest && c.graph.type_intra <= PathType::kNvl &&
         capability == comm.max_compute_capability &&
         (capability == 70 || capability == 80 || capability == 90);
}

double Bandwidth(const NcclPair& c) {
  const NcclCommunicator& comm = c.comm;
  const NcclTunerTables::Generation& g = c.generation();
  const int index = c.nodes_index();
  const int channels = c.graph.num_channels;
  const bool amd = comm.cpu_arch == CpuArch::kX86 && comm.cpu_vendor == CpuVendor::kAmd;
  const double ll_max =
      comm.nodes == 1 ? g.ll_max[0] : c.tables.generations[amd ? 1 : 0].ll_max[index];
  const bool collnet =
      c.algorithm == NcclAlgorithm::kCollNetDirect || c.algorithm == NcclAlgorithm::kCollNetChain;
  double bus = channels * (comm.nodes <= 2 || collnet ? c.graph.bw_intra : c.graph.bw_inter);
  bus = std::min(bus, g.bus_max);
  switch (c.algorithm) {
    case NcclAlgorithm::kRing: {
      if (c.protocol == Protocol::kLl) {
        const bool quarter = comm.nodes > 1 || c.all_reduce() || c.kind == ProgramKind::kReduce;
        bus = std::min(ll_max, bus * (quarter ? 1.0 / 4 : 1.0 / 3));
      } else if (c.protocol == Protocol::kLl128) {
        const bool lone = comm.ranks / comm.nodes < 2;
        bus = std::min(bus * (lone ? 0.7 : 0.92), channels * g.ring_ll128[index]);
      }
      return bus * comm.ranks / RingSteps(c.kind, comm.ranks);
    }
    case NcclAlgorithm::kTree:
      return NcclTreeBandwidth(c, bus, ll_max) * 0.5;
    case NcclAlgorithm::kCollNetDirect: {
      double factor = static_cast<double>(comm.ranks) / comm.nodes / channels;
      factor -= (factor - 1) / 2;
      return bus / factor * 0.5;
    }
    case NcclAlgorithm::kCollNetChain:
      return bus * 0.75 * 0.5;
    default:
      return bus * 0.75;  // NVLS
  }
}

double Latency(const NcclPair& c) {
  const NcclCommunicator& comm = c.comm;
  const double base = c.BaseLatency();
  double intra = c.Latency(c.algorithm, c.InsideNode());
  if (comm.nodes > 1 && c.protocol == Protocol::kLl) intra *= 1.8;
  // The network's own latency replaces the table's.
  const double inter = c.graph.latency_inter != 0 ? c.graph.latency_inter
                                                  : c.Latency(c.algorithm, NcclTunerTables::kNet);
  const int others = comm.ranks / comm.nodes - 1;
  switch (c.algorithm) {
    case NcclAlgorithm::kRing: {
      int crossings = 0;
      if (comm.nodes > 1) crossings = c.all_reduce() ? 2 * comm.nodes : comm.nodes - 1;
      return NcclRingLatency(c, intra, inter, crossings);
    }
    case NcclAlgorithm::kTree:
      return base + 2 * (others * intra + FloorLog2(comm.nodes) * inter);
    case NcclAlgorithm::kCollNetDirect:
      return base + 2 * (std::min(1, others) * intra + others * 0.5) + inter;
    case NcclAlgorithm::kCollNetChain:
      return base + 2 * others * intra;
    default:
      return base;  // NVLS
  }
}

}  // namespace

NcclCost NcclCostOf217(const NcclCommunicator& communicator, const NcclTunerTables& tables,
                       ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol) {
  const NcclPair pair = {communicator, tables,    NcclGraphOf(communicator, algorithm),
                         kind,         algorithm, protocol};
  if (!Enabled(pair)) return {};
  return {Latency(pair), Bandwidth(pair)};
}

}  // namespace plancast
