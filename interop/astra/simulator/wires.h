#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_WIRES_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_WIRES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interop/astra/simulator/astra_network.h"

namespace plancast::astra {

// Where messages go and how long that takes, in whole nanoseconds, cut off as
// ASTRA-sim's analytical backends cut them off.
class Wires {
 public:
  explicit Wires(const AstraNetwork& network);

  // Without congestion: hops times latency, and the bytes once. A message whose
  // ends differ in several dimensions is charged for the first of them.
  int64_t Delay(int64_t from, int64_t to, int64_t bytes) const;

  // With congestion, one hop: from a NPU, or from the switch that the message has
  // entered from it.
  struct Place {
    int32_t npu = 0;
    int32_t through = -1;  // dimension of the switch; -1: at the NPU itself
  };
  struct Hop {
    int32_t link = 0;
    Place next;
  };
  Hop NextHop(Place at, int64_t to);
  int64_t SerialisationTime(int32_t link, int64_t bytes) const;
  int64_t ArrivalTime(int32_t link, int64_t bytes) const;

  // Messages on a link and behind it, by index.
  struct Link {
    int32_t dim = 0;
    bool busy = false;
    int32_t first = -1, last = -1;
  };
  Link& link(int32_t index) { return links_[index]; }

 private:
  struct Dim {
    AstraWiring wiring;
    int64_t size, stride;
    double bytes_per_ns, latency_ns;
    int64_t first_link, links_per_npu;
  };
  int64_t CoordinateOf(int64_t rank, const Dim& dim) const { return rank / dim.stride % dim.size; }
  const Dim& FirstDifferent(int64_t from, int64_t to) const;
  int32_t LinkAt(const Dim& dim, int64_t npu, int64_t slot);

  std::vector<Dim> dims_;
  std::vector<Link> links_;
  absl::flat_hash_map<int64_t, int32_t> made_;
};

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_WIRES_H_
