#ifndef PLANCAST_COLLECTIVES_NCCL_TUNER_PAIR_H_
#define PLANCAST_COLLECTIVES_NCCL_TUNER_PAIR_H_

#include "collectives/nccl/graphs.h"
#include "collectives/nccl/tuner.h"
#include "collectives/nccl/tuner_tables.h"
#include "collectives/programs/program_kind.h"
#include "collectives/programs/protocol.h"

namespace plancast {

// An algorithm and a protocol for a kind on a communicator, and what all releases of NCCL
// say of them.
struct NcclPair {
  const NcclCommunicator& comm;
  const NcclTunerTables& tables;
  const NcclGraph& graph;
  ProgramKind kind;
  NcclAlgorithm algorithm;
  Protocol protocol;

  bool all_reduce() const { return kind == ProgramKind::kAllReduce; }
  bool gathers() const {
    return kind == ProgramKind::kAllGather || kind == ProgramKind::kReduceScatter;
  }
  bool simple() const { return protocol == Protocol::kSimple; }
  int nodes_index() const;  // of the tables: one node, two, more
  const NcclTunerTables::Generation& generation() const;

  // Microseconds of the tables.
  double BaseLatency() const;
  double Latency(NcclAlgorithm of, NcclTunerTables::Hardware hardware) const;
  NcclTunerTables::Hardware InsideNode() const;
};

// Of a ring with these latencies of a step inside a node and between nodes.
double NcclRingLatency(const NcclPair& pair, double intra, double inter, int crossings);

// Of trees, GB/s; `bus`: of their channels, `ll_max`: the most that LL reaches.
double NcclTreeBandwidth(const NcclPair& pair, double bus, double ll_max);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_TUNER_PAIR_H_
