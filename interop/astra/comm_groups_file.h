#ifndef PLANCAST_INTEROP_ASTRA_COMM_GROUPS_FILE_H_
#define PLANCAST_INTEROP_ASTRA_COMM_GROUPS_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/chakra/verify_traces.h"

namespace plancast {

// Reads a json of process groups, {"1": [0, 2], "2": [1, 3]}: names are numbers, 0
// (all ranks) is passed over. Errors name `what` and the group.
absl::StatusOr<CommGroups> ReadCommGroups(absl::string_view json, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_COMM_GROUPS_FILE_H_
