#include "collectives/nccl/tuner_pair.h"

#include <algorithm>

#include "collectives/nccl/tuner_costs.h"

namespace plancast {

int NcclPair::nodes_index() const { return std::min(comm.nodes, 3) - 1; }

const NcclTunerTables::Generation& NcclPair::generation() const {
  return tables.Of(comm.min_compute_capability);
}

double NcclPair::BaseLatency() const {
  return tables.latency[static_cast<int>(algorithm)].base[static_cast<int>(protocol)];
}

double NcclPair::Latency(NcclAlgorithm of, NcclTunerTables::Hardware hardware) const {
  return tables.latency[static_cast<int>(of)].hardware[hardware][static_cast<int>(protocol)];
}

NcclTunerTables::Hardware NcclPair::InsideNode() const {
  return graph.type_intra == PathType::kNvl ? NcclTunerTables::kNvlink : NcclTunerTables::kPci;
}

double NcclRingLatency(const NcclPair& pair, double intra, double inter, int crossings) {
  const double base = pair.BaseLatency();
  const int steps = RingSteps(pair.kind, pair.comm.ranks);
  if (pair.all_reduce() || pair.gathers()) {
    return base + (steps - crossings) * intra + crossings * inter;
  }
  const auto hardware = pair.comm.nodes == 1 ? pair.InsideNode() : NcclTunerTables::kNet;
  if (pair.graph.same_channels) return base + pair.Latency(NcclAlgorithm::kRing, hardware);
  const NcclAlgorithm as = pair.simple() ? NcclAlgorithm::kTree : NcclAlgorithm::kRing;
  return base + steps * pair.Latency(as, hardware);
}

double NcclTreeBandwidth(const NcclPair& pair, double bus, double ll_max) {
  const NcclTunerTables::Generation& g = pair.generation();
  const int channels = pair.graph.num_channels;
  bus = std::min(bus * 0.92, channels * g.tree[pair.nodes_index()]);
  if (pair.protocol == Protocol::kLl) bus = std::min(bus / 3.8, ll_max);
  if (pair.protocol == Protocol::kLl128) {
    bus = std::min(bus * (pair.comm.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                   channels * g.tree_ll128[pair.nodes_index()]);
  }
  return bus;
}

}  // namespace plancast
