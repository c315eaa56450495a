#ifndef PLANCAST_TESTS_FUZZ_NATIVE_STRUCTURE_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_STRUCTURE_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "tests/fuzz/native/random.h"

namespace plancast {

// Part of a text, [begin, end).
struct Region {
  size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
  size_t size() const { return end - begin; }
};

// Something of the text that a person would point at, drawn: a bracketed group, an
// XML element or tag, a quoted string, a line or a row of lines. May be empty.
Region DrawRegion(absl::string_view text, FuzzRandom& random);

// A number, or a word, as written. Empty if none is near the place drawn.
Region DrawNumber(absl::string_view text, FuzzRandom& random);
Region DrawWord(absl::string_view text, FuzzRandom& random);

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_STRUCTURE_H_
