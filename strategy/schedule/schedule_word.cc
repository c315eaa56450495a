#include "strategy/schedule/schedule_word.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace plancast {
namespace {

constexpr double kLeastMemory = 0.01, kMostMemory = 1e6;

}  // namespace

std::optional<ScheduleWord> ReadScheduleWord(absl::string_view text) {
  ScheduleWord word;
  if (absl::ConsumePrefix(&text, "search:")) {
    word.schedule = Schedule::kSearch;
    const bool number = !text.empty() && absl::ascii_isdigit(text[0]) &&
                        absl::SimpleAtod(text, &word.search_memory);
    if (!number || word.search_memory < kLeastMemory || word.search_memory > kMostMemory) {
      return std::nullopt;
    }
    return word;
  }
  const auto schedule = kScheduleNames.Find(text);
  if (!schedule) return std::nullopt;
  word.schedule = *schedule;
  return word;
}

}  // namespace plancast
