#ifndef PLANCAST_INTEROP_NCCL_GRAPH_XML_H_
#define PLANCAST_INTEROP_NCCL_GRAPH_XML_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/nccl/graphs.h"
#include "collectives/nccl/search.h"

// NCCL's graph files: what `NCCL_GRAPH_DUMP_FILE` writes and `NCCL_GRAPH_FILE` reads.

namespace plancast {

// As NCCL numbers its graphs.
enum class NcclGraphId { kRing = 0, kTree = 1, kCollNetChain = 2, kNvls = 3, kCollNetDirect = 4 };

struct NumberedGraph {
  NcclGraphId id = NcclGraphId::kRing;
  NcclGraph graph;  // GPUs by rank where the file has ranks, else by number in their host
};

// Reads a file named `what` in errors. Files of NCCL 2.27 and later number devices in
// hexadecimal and name ranks; older ones do neither.
absl::StatusOr<std::vector<NumberedGraph>> ReadNcclGraphs(absl::string_view text,
                                                          absl::string_view what);

// The graphs of a host's first node, as the searched release would write them.
std::string WriteNcclGraphs(const NcclSearchResult& search);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_NCCL_GRAPH_XML_H_
