#ifndef PLANCAST_TESTS_STRATEGY_SCHEDULE_RANDOM_TABLE_H_
#define PLANCAST_TESTS_STRATEGY_SCHEDULE_RANDOM_TABLE_H_

#include <cstdint>
#include <random>

#include "strategy/schedule/check_schedule.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// A table that stages can run: they take turns at random, and each does any step that is ready.
// `weights`: with W.
ScheduleTable RandomTable(const ScheduleShape& shape, std::mt19937& random, bool weights = false);

}  // namespace plancast

#endif  // PLANCAST_TESTS_STRATEGY_SCHEDULE_RANDOM_TABLE_H_
