#ifndef PLANCAST_INTEROP_CHAKRA_GZIP_H_
#define PLANCAST_INTEROP_CHAKRA_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// Begins like a gzip file.
bool IsGzip(absl::string_view bytes);

// The contents of a gzip file, which may have several members. Errors name
// `what` and the byte; one is more than `most_bytes` of contents.
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, absl::string_view what,
                                   size_t most_bytes);

// Without name or date: equal contents give equal files.
std::string Gzip(absl::string_view contents);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHAKRA_GZIP_H_
