#include "strategy/schedule/schedule_word.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace plancast {
namespace {

constexpr double kLeastMemory = 0.01, kMostMemory = 1e6;
constexpr int64_t kMostOngoing = 1'000'000;

bool ReadMemory(absl::string_view text, double* memory) {
  return !text.empty() && absl::ascii_isdigit(text[0]) && absl::SimpleAtod(text, memory) &&
         *memory >= kLeastMemory && *memory <= kMostMemory;
}

bool ReadCounts(absl::string_view text, std::vector<int64_t>* counts) {
  for (const absl::string_view word : absl::StrSplit(text, '-')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1 || number > kMostOngoing) return false;
    counts->push_back(number);
  }
  return true;
}

}  // namespace

std::optional<ScheduleWord> ReadScheduleWord(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const auto schedule = kScheduleNames.Find(parts.first);
  if (!schedule) return std::nullopt;
  ScheduleWord word;
  word.schedule = *schedule;
  const bool says_more = parts.first.size() < text.size();
  if (!says_more) {
    if (word.schedule == Schedule::kOngoing) return std::nullopt;
    return word;
  }
  const bool read = word.schedule == Schedule::kSearch
                        ? ReadMemory(parts.second, &word.search_memory)
                    : BoundsOngoing(word.schedule) ? ReadCounts(parts.second, &word.most_ongoing)
                                                   : false;
  if (!read) return std::nullopt;
  return word;
}

std::string PrintScheduleWord(const ScheduleWord& word) {
  std::string text(kScheduleNames[word.schedule]);
  if (word.search_memory > 0) absl::StrAppend(&text, ":", word.search_memory);
  if (!word.most_ongoing.empty()) {
    absl::StrAppend(&text, ":", absl::StrJoin(word.most_ongoing, "-"));
  }
  return text;
}

}  // namespace plancast
