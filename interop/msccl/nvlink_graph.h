#ifndef PLANCAST_INTEROP_MSCCL_NVLINK_GRAPH_H_
#define PLANCAST_INTEROP_MSCCL_NVLINK_GRAPH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/synthesis/link_graph.h"

namespace plancast {

// The GPUs of one of NCCL's topology files, by rank, and the NVLinks (xGMI) between
// them, as wide as they are many. InvalidArgument where they go through a switch,
// where every GPU reaches every other and there is nothing to search for.
absl::StatusOr<LinkGraph> ReadNvlinkGraph(absl::string_view text, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_NVLINK_GRAPH_H_
