#ifndef PLANCAST_STRATEGY_BYTE_SIZE_H_
#define PLANCAST_STRATEGY_BYTE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// `25MB`, `1.5GB` (decimal), `512KiB` (binary), `100B` or `100`: a whole,
// positive number of bytes.
absl::StatusOr<int64_t> ParseByteSize(absl::string_view text);

// The shortest exact text, decimal units first: `25MB`, `25MiB`, `1001B`.
std::string PrintByteSize(int64_t bytes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_BYTE_SIZE_H_
