#ifndef PLANCAST_INTEROP_CHAKRA_CHAKRA_TRACE_H_
#define PLANCAST_INTEROP_CHAKRA_CHAKRA_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/chakra/et_file.h"

namespace plancast {

// What one rank ran: the parts of a Chakra trace that an execution needs. Both
// variants come out alike: traces converted from PyTorch, whose other attributes
// (rf_id, fw_parent, seq_id, scope, tid, op_schema, ...) say nothing of time, and
// generated ones (`is_cpu_op` as an integer, sizes of any width).
struct ChakraTrace {
  enum class Kind : uint8_t { kNothing, kCompute, kMemory, kSend, kRecv, kCollective };

  struct Node {
    uint64_t id = 0;
    std::string name;
    Kind kind = Kind::kNothing;
    bool on_cpu = false;
    int64_t duration_us = 0;
    int64_t ops = -1, tensor_bytes = -1;  // -1: not said
    chakra::CollectiveCommType collective = chakra::ALL_REDUCE;
    int64_t bytes = 0;       // of communication; comm_size
    int64_t group = 0;       // pg_name; 0: all ranks
    std::vector<bool> dims;  // involved_dim; empty: all
    int64_t priority = 0;
    int64_t src = -1, dst = -1;  // -1: the rank itself
    int64_t tag = 0;
    std::vector<int32_t> deps;  // into nodes: data and control, ascending, each once
  };
  std::vector<Node> nodes;  // by ascending id

  // What PyTorch's converter writes and Chakra's feeder does not mind, as it was taken.
  struct Liberties {
    int64_t control_edges = 0;  // to nodes that are not there, or to the node itself: left out
    int64_t calls = 0;  // communication on the CPU side that says no size, type or peer: host work
    int64_t named = 0;  // collectives without `comm_type`: the one that their name says
  };
  Liberties liberties;
};

// The same in words, one sentence each, of all traces together.
std::vector<std::string> NotesOf(const std::vector<const ChakraTrace*>& traces);

// Errors name `what` and the node: ids that occur twice, data dependencies on nodes
// that are not there, dependencies in a circle, no node free of them, attributes that are missing
// or make no sense.
absl::StatusOr<ChakraTrace> ChakraTraceFrom(const EtFile& file, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHAKRA_CHAKRA_TRACE_H_
