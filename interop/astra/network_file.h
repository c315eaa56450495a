#ifndef PLANCAST_INTEROP_ASTRA_NETWORK_FILE_H_
#define PLANCAST_INTEROP_ASTRA_NETWORK_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/astra/simulator/astra_network.h"

namespace plancast {

// Reads ASTRA-sim's network yml: lists `topology` (Ring, FullyConnected, Switch),
// `npus_count`, `bandwidth` (GiB/s) and `latency` (ns), one entry for each dimension,
// as `[a, b]` or as lines `- a`. Errors name `what`, line and key.
absl::StatusOr<AstraNetwork> ReadAstraNetwork(absl::string_view yaml, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_NETWORK_FILE_H_
