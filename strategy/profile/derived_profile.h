#ifndef PLANCAST_STRATEGY_PROFILE_DERIVED_PROFILE_H_
#define PLANCAST_STRATEGY_PROFILE_DERIVED_PROFILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/software_profile.pb.h"

namespace plancast {

// The profile in `text` with all that it has from the shipped ones it is `like`, less the fields
// that it is `without`. `what` names the text in errors.
absl::StatusOr<proto::SoftwareProfile> ReadDerivedProfile(absl::string_view text,
                                                          absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_DERIVED_PROFILE_H_
