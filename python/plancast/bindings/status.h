#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_STATUS_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plancast {

// The one place where a status becomes a Python exception: what the user can
// mend is plancast.errors.InputError, the rest RuntimeError. Call it with the
// GIL held.
[[noreturn]] void ThrowStatus(const absl::Status& status);

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) ThrowStatus(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_STATUS_H_
