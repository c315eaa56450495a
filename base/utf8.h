#ifndef PLANCAST_BASE_UTF8_H_
#define PLANCAST_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace plancast {

// Bytes of the character that begins at `i`; 0 if there is none.
size_t Utf8At(absl::string_view text, size_t i);

bool IsUtf8(absl::string_view text);

// The text with U+FFFD for every byte that belongs to no character.
std::string ToUtf8(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_BASE_UTF8_H_
