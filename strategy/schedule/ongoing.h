#ifndef PLANCAST_STRATEGY_SCHEDULE_ONGOING_H_
#define PLANCAST_STRATEGY_SCHEDULE_ONGOING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
namespace plancast {

// `schedule=ongoing:4-3-2-1`: how many micro-batches of each stage may be forward and not yet
// back; one number holds for all stages.
inline constexpr absl::string_view kOngoingPrefix = "ongoing:";
std::string PrintOngoing(const std::vector<int64_t>& most);
// nullopt: not of this form, or a number is not from 1 to a million.
std::optional<std::vector<int64_t>> ReadOngoing(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_ONGOING_H_
