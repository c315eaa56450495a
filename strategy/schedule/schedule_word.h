#ifndef PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_WORD_H_
#define PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_WORD_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "strategy/schedule/schedule.h"

namespace plancast {

// `1f1b`, `search`, `search:1.5`: a schedule by its name, and what a search may keep.
struct ScheduleWord {
  Schedule schedule = Schedule::kNone;
  double search_memory = 0;  // PlanOptions
};

// std::nullopt: the text is no such word.
std::optional<ScheduleWord> ReadScheduleWord(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_WORD_H_
