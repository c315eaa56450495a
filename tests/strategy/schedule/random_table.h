#ifndef PLANCAST_TESTS_STRATEGY_SCHEDULE_RANDOM_TABLE_H_
#define PLANCAST_TESTS_STRATEGY_SCHEDULE_RANDOM_TABLE_H_

#include <cstdint>
#include <random>
#include <string>

#include "strategy/schedule/check_schedule.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// A table that stages can run: they take turns at random, and each does any step that is ready.
// `weights`: with W. `placement`: of virtual stages (StagePlacement::Parse).
ScheduleTable RandomTable(const ScheduleShape& shape, std::mt19937& random, bool weights = false,
                          const std::string& placement = "");
// Any stage for any virtual stage, but as many for each; two copies now and then.
std::string RandomPlacement(const ScheduleShape& shape, std::mt19937& random);

}  // namespace plancast

#endif  // PLANCAST_TESTS_STRATEGY_SCHEDULE_RANDOM_TABLE_H_
