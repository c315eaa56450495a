#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_NETWORK_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_NETWORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plancast {

enum class AstraWiring : uint8_t { kRing, kFullyConnected, kSwitch };

// The network of ASTRA-sim's analytical backends: dimensions, each of which
// joins NPUs that differ in that coordinate alone. Rank = mixed radix of the
// coordinates, dimension 0 fastest. 1 cycle is 1 ns.
struct AstraNetwork {
  struct Dim {
    AstraWiring wiring = AstraWiring::kRing;
    int64_t npus = 0;
    double gib_per_s = 0;   // per direction of a link, GiB = 2^30 bytes
    double latency_ns = 0;  // per hop
  };
  std::vector<Dim> dims;
  // Links that messages share one after another and store and forward, or a delay
  // that depends on the message alone.
  bool congestion_aware = false;
  int queues_per_dim = 1;

  int64_t npus() const;
  // At most kMaxNpus NPUs, rates above 0, latencies of at least 0.
  absl::Status Verify() const;

  static constexpr int64_t kMaxNpus = 65536;
};

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_NETWORK_H_
