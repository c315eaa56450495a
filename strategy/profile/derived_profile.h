#ifndef PLANCAST_STRATEGY_PROFILE_DERIVED_PROFILE_H_
#define PLANCAST_STRATEGY_PROFILE_DERIVED_PROFILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/embedded_file.h"
#include "proto/software_profile.pb.h"

namespace plancast {

// The profile in `text` with all that it has from the shipped ones it is `like`, less the fields
// that it is `without`. `what` names the text in errors.
absl::StatusOr<proto::SoftwareProfile> ReadDerivedProfile(absl::string_view text,
                                                          absl::string_view what);

// `profile` with these files in turn: each is without fields of what is before it, adds to its
// lists and overrides the rest. Errors: of the texts.
absl::StatusOr<proto::SoftwareProfile> WithAdditions(proto::SoftwareProfile profile,
                                                     absl::Span<const EmbeddedFile* const> files);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PROFILE_DERIVED_PROFILE_H_
