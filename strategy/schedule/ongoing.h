#ifndef PLANCAST_STRATEGY_SCHEDULE_ONGOING_H_
#define PLANCAST_STRATEGY_SCHEDULE_ONGOING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// `schedule=ongoing:4-3-2-1`: how many micro-batches of each stage may be forward and not yet
// back; one number holds for all stages.
inline constexpr absl::string_view kOngoingPrefix = "ongoing:";
std::string PrintOngoing(const std::vector<int64_t>& most);
// nullopt: not of this form, or a number is not from 1 to a million.
std::optional<std::vector<int64_t>> ReadOngoing(absl::string_view text);

// The order of stages of one chunk that go back as soon as a gradient is there, and else forward
// within their bounds: `most`, one number or one a stage. As if a forward pass took one unit of
// time, a backward pass two and a transfer none.
ScheduleTable TableOfOngoing(const std::vector<int64_t>& most, int64_t stages,
                             int64_t micro_batches);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_ONGOING_H_
