#ifndef PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_WORD_H_
#define PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_WORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "strategy/schedule/schedule.h"

namespace plancast {

// `1f1b`, `search:1.5`, `varuna:4`, `ongoing:4-3-2-1`: a schedule by its name, what a search may
// keep, and how many micro-batches stages may have in flight (one number for all, or one each).
struct ScheduleWord {
  Schedule schedule = Schedule::kNone;
  double search_memory = 0;           // PlanOptions
  std::vector<int64_t> most_ongoing;  // likewise; empty: nothing is said
};

// std::nullopt: the text is no such word.
std::optional<ScheduleWord> ReadScheduleWord(absl::string_view text);
std::string PrintScheduleWord(const ScheduleWord& word);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_WORD_H_
