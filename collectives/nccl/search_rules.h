#ifndef PLANCAST_COLLECTIVES_NCCL_SEARCH_RULES_H_
#define PLANCAST_COLLECTIVES_NCCL_SEARCH_RULES_H_

#include <cstdint>
#include <vector>

#include "cluster/topology/nccl_version.h"

namespace plancast {

// What a release of NCCL tries when it looks for channels
// (collectives/nccl/search_data/nccl_search.textproto).
struct SearchRules {
  int max_channels = 0;
  int64_t total_steps = 0;
  int attempt_steps = 0;
  int same_channels_steps = 0;
  int pci_order_steps = 0;
};

const SearchRules& SearchRulesOf(NcclVersion version);

// Bandwidths of a channel to try, GB/s, falling; `inter`: channels leave the host.
const std::vector<float>& SpeedLadder(NcclVersion version, int compute_capability, bool inter);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_SEARCH_RULES_H_
