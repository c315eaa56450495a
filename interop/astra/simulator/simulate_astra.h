#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_SIMULATE_ASTRA_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_SIMULATE_ASTRA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "interop/astra/simulator/astra_network.h"
#include "interop/astra/simulator/astra_system.h"
#include "interop/astra/simulator/astra_workload.h"

namespace plancast {

struct AstraResult {
  std::vector<int64_t> finish_ns;   // by rank
  std::vector<int64_t> compute_ns;  // by rank: kernels; finish less this is exposed communication
  int64_t events = 0, messages = 0, collectives = 0;

  int64_t first_finish_ns() const;
  int64_t last_finish_ns() const;
};

struct AstraOptions {
  int64_t max_events = 2'000'000'000;  // some five minutes
  // Collectives that begin at one time on all ranks of an idle network are
  // simulated once; without, each by itself: equal, slower.
  bool memo = true;
};

// What ASTRA-sim would say, to the nanosecond: its mechanism with its mistakes
// (docs/traces.md), event by event. For forecasts use Execute.
// Errors: what the Verify functions say; ranks that wait for each other for ever.
absl::StatusOr<AstraResult> SimulateAstra(const AstraWorkload& workload,
                                          const AstraNetwork& network, const AstraSystem& system,
                                          const AstraOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_SIMULATE_ASTRA_H_
