#include "strategy/schedule/ongoing.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace plancast {
namespace {

constexpr int64_t kMostOngoing = 1'000'000;

}  // namespace

std::string PrintOngoing(const std::vector<int64_t>& most) {
  return absl::StrCat(kOngoingPrefix, absl::StrJoin(most, "-"));
}

std::optional<std::vector<int64_t>> ReadOngoing(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kOngoingPrefix)) return std::nullopt;
  std::vector<int64_t> most;
  for (const absl::string_view word : absl::StrSplit(text, '-')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1 || number > kMostOngoing) {
      return std::nullopt;
    }
    most.push_back(number);
  }
  return most;
}

}  // namespace plancast
