#ifndef PLANCAST_BASE_WRONG_H_
#define PLANCAST_BASE_WRONG_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plancast {

// What is wrong with an input, said in these parts one behind another.
template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace plancast

#endif  // PLANCAST_BASE_WRONG_H_
