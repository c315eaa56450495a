#ifndef PLANCAST_INTEROP_NCCL_SEARCH_JSON_H_
#define PLANCAST_INTEROP_NCCL_SEARCH_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/nccl/search.h"

namespace plancast {

// One JSON object with all that NCCL would find and expect: `graphs` (patterns by
// NCCL's numbers, channels, GB/s, path types), `gpuPaths` ([type, GB/s, hops] to GPUs
// and network devices), `rings` and `trees_per_rank_per_channel_up_down` over all
// hosts (of at most 65,536 ranks), `tuning` (µs, GB/s of the buffer) and `times` (µs) of five
// collectives from 8 bytes to 8 GiB. Six significant digits. `topology` is said as it is given.
absl::StatusOr<std::string> NcclSearchJson(const NcclSearchResult& search,
                                           absl::string_view topology);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_NCCL_SEARCH_JSON_H_
