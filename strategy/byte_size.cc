#include "strategy/byte_size.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

struct Unit {
  absl::string_view name;
  int64_t bytes;
};

// Largest first within decimal and binary, as the printer tries them.
constexpr Unit kUnits[] = {
    {"TB", 1'000'000'000'000},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"KB", 1'000},
    {"TiB", int64_t{1} << 40},
    {"GiB", 1 << 30},
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"B", 1},
};

}  // namespace

absl::StatusOr<int64_t> ParseByteSize(absl::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const absl::string_view number = text.substr(0, digits);
  const absl::string_view suffix =
      digits == absl::string_view::npos ? "B" : absl::StripAsciiWhitespace(text.substr(digits));
  double value;
  if (absl::SimpleAtod(number, &value)) {
    for (const Unit& unit : kUnits) {
      if (absl::AsciiStrToLower(unit.name) != absl::AsciiStrToLower(suffix)) continue;
      const double bytes = value * static_cast<double>(unit.bytes);
      // Below 2^53 every whole number is a double.
      if (bytes >= 1 && bytes < 9e15 && bytes == std::floor(bytes)) {
        return static_cast<int64_t>(bytes);
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("`", text,
                   "` is not a size in bytes. Write a positive number and a unit, as in `25MB` or "
                   "`32MiB`."));
}

std::string PrintByteSize(int64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes % unit.bytes == 0 && bytes != 0) return absl::StrCat(bytes / unit.bytes, unit.name);
  }
  return "0B";
}

}  // namespace plancast
