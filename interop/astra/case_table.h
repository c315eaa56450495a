#ifndef PLANCAST_INTEROP_ASTRA_CASE_TABLE_H_
#define PLANCAST_INTEROP_ASTRA_CASE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/astra/simulator/astra_network.h"
#include "interop/astra/simulator/astra_system.h"

namespace plancast {

// A run of ASTRA-sim that somebody wrote down: what went in, as words, and what
// came out.
struct AstraCase {
  std::string name;
  AstraNetwork network;
  AstraSystem system;
  std::string workload;    // `micro`, `chain: 10 x (comp 10 us -> AR)`, ...
  std::string collective;  // `all_reduce`, `send_recv`, ...
  int64_t bytes = 0;
  int64_t finish_min_ns = -1, finish_max_ns = -1;  // -1: unknown
  std::string status;                              // `ok`, or how the run failed
  std::string note;
};

// Reads a table with the columns case, backend, topology, npus_per_dim,
// bandwidth_GiBps, latency_ns, workload, collective, bytes, algorithm,
// preferred_dataset_splits, active_chunks_per_dim, endpoint_delay,
// local_mem_bw_GBps, scheduling, collective_optimization and num_queues_per_dim;
// finish_min_ns, finish_max_ns, status and note may be missing. Lists over
// dimensions are joined by `x`. `what` stands for the input in errors, which name
// line and column.
absl::StatusOr<std::vector<AstraCase>> ReadAstraCases(absl::string_view csv,
                                                      absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_CASE_TABLE_H_
