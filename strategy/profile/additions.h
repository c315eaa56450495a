#ifndef PLANCAST_STRATEGY_PROFILE_ADDITIONS_H_
#define PLANCAST_STRATEGY_PROFILE_ADDITIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/embedded_file.h"

namespace plancast {

// What may be added to any software profile (strategy/data/additions).
std::vector<std::string> ProfileAdditionNames();

// Errors: unknown names, with the nearest.
absl::StatusOr<const EmbeddedFile*> FindProfileAddition(absl::string_view name);

// What it is, for people.
absl::StatusOr<std::string> DescribeProfileAddition(absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_ADDITIONS_H_
