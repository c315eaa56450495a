#include "base/utf8.h"

#include "absl/strings/str_cat.h"

namespace plancast {

size_t Utf8At(absl::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 && first < 0xf5 ? 4
                        : first >= 0xe0               ? 3
                        : first >= 0xc2               ? 2
                                                      : 0;
  if (first >= 0xf5 || length == 0 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(i + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool outside = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8At(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string ToUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8At(text, i);
    absl::StrAppend(&out, length == 0 ? absl::string_view("\xef\xbf\xbd") : text.substr(i, length));
    i += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace plancast
