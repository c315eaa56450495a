#ifndef PLANCAST_INTEROP_ASTRA_SYSTEM_FILE_H_
#define PLANCAST_INTEROP_ASTRA_SYSTEM_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/astra/simulator/astra_system.h"

namespace plancast {

struct AstraSystemFile {
  AstraSystem system;
  // Traces of the collective that takes the place of the all-reduce (PREFIX.0.et,
  // ...), or "". The algorithm says kCustom; the programs are still to be filled in.
  std::string custom_prefix;
};

// Reads ASTRA-sim's system json. Keys that change no time are passed over; errors
// name `what` and the key: a value that makes no sense, what this mode does not have
// (`model-shared-bus`), and a key that is nearly one of those known.
absl::StatusOr<AstraSystemFile> ReadAstraSystem(absl::string_view json, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_SYSTEM_FILE_H_
