#include "strategy/nodes/on.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace plancast {

absl::StatusOr<OnDirective> ParseOn(absl::string_view axis, absl::string_view text) {
  OnDirective on;
  on.axis = std::string(axis);
  const size_t slash = text.find('/');
  const bool parts = slash != absl::string_view::npos;
  const bool read =
      absl::SimpleAtoi(text.substr(0, slash), &on.part) && on.part >= 0 &&
      (!parts || (absl::SimpleAtoi(text.substr(slash + 1), &on.parts) && on.parts > 0));
  if (!read) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` names no ranks of `", axis,
                     "`. Write `3` for the rank 3, or `1/2` for the second half of the ranks."));
  }
  if (parts && on.part >= on.parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "`: of ", on.parts, " parts there are 0 to ", on.parts - 1, "."));
  }
  return on;
}

std::string PrintOn(const OnDirective& on) {
  return on.parts == 0 ? absl::StrCat(on.part) : absl::StrCat(on.part, "/", on.parts);
}

absl::StatusOr<OnRanks> RanksOf(const OnDirective& on, int64_t size) {
  const std::string said = absl::StrCat("`on: {", on.axis, ": ", PrintOn(on), "}`");
  if (on.parts == 0) {
    if (on.part < size) return OnRanks{on.part, 1};
    return absl::InvalidArgumentError(
        absl::StrCat(said, ": `", on.axis, "` has ", size, " ranks here, 0 to ", size - 1, "."));
  }
  if (size % on.parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat(said, ": `", on.axis, "` has ", size,
                                                   " ranks here, which do not divide into ",
                                                   on.parts, " equal parts."));
  }
  return OnRanks{on.part * (size / on.parts), size / on.parts};
}

}  // namespace plancast
