#include "graph/collective_kind.h"

namespace plancast {

absl::string_view CollectiveKindName(CollectiveKind kind) {
  constexpr absl::string_view kNames[] = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all",     "permute",
      "send_recv",  "broadcast",  "copy_to_host",   "copy_to_device", "host_update"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace plancast
