#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_WORKLOAD_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/enum_names.h"

namespace plancast {

enum class AstraNodeKind : uint8_t { kNothing, kCompute, kCollective, kSend, kRecv };

// kReplay takes as long as its node says.
enum class AstraCollective : uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kReplay };
inline constexpr auto kAstraCollectiveNames =
    NamesOf<AstraCollective>("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "replay");

struct AstraNode {
  uint64_t id = 0;  // as in the trace, for errors and for the order of issue
  AstraNodeKind kind = AstraNodeKind::kNothing;
  bool on_cpu = false;
  AstraCollective collective = AstraCollective::kAllReduce;
  int32_t group = -1;          // into AstraWorkload::groups; -1: all ranks
  int32_t dims = -1;           // into AstraWorkload::involved; -1: all dimensions
  int64_t duration_us = 0;     // of compute and of a collective that is replayed
  int64_t ops = 0, bytes = 0;  // of compute under a roofline; bytes: also the message
  int64_t peer = 0, tag = 0;   // of send and recv; ranks, or places of a custom collective
  int64_t priority = 0;        // of a collective
};

// Nodes by ascending id, and for each those it waits for, as CSR.
struct AstraProgram {
  std::vector<AstraNode> nodes;
  std::vector<int32_t> dep_begin = {0};
  std::vector<int32_t> deps;  // into nodes

  void Add(AstraNode node, const std::vector<int32_t>& waits_for = {});
};

// Ranks in the order of the file, which is that of their ring.
struct AstraGroup {
  int64_t id = 0;  // its name, a number of at least 1
  std::vector<int64_t> ranks;
};

// What every rank runs. Ranks with equal traces share a program.
struct AstraWorkload {
  std::vector<AstraProgram> programs;
  std::vector<int32_t> program_of;  // by rank
  std::vector<AstraGroup> groups;
  std::vector<std::vector<bool>> involved;  // sets of dimensions

  // Indices in range, no cycle, ranks inside `npus`, ascending ids.
  absl::Status Verify(int64_t npus) const;
};

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_ASTRA_WORKLOAD_H_
