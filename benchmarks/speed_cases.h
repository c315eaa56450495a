#ifndef PLANCAST_BENCHMARKS_SPEED_CASES_H_
#define PLANCAST_BENCHMARKS_SPEED_CASES_H_

#include <functional>
#include <string>
#include <vector>

namespace plancast {

// What a run of a case tells. CPU seconds of one thread.
struct Measured {
  double value = 0;         // in the unit of the case
  double tasks = 0;         // that were simulated
  double memory_bytes = 0;  // peak that the case added; 0: of its whole process
  double iteration_s = 0;   // forecast, where there is one
};

// One line of the speed table: what is asked of Plancast, and what others take
// for the like.
struct SpeedCase {
  std::string what;
  std::string unit;  // `s`, `tasks/s`, `plans/s`, `B/task`
  bool more_is_better = false;
  double target = 0;
  std::string peer;       // whose figure; empty: nobody gives one
  double peer_value = 0;  // in the unit of the case
  std::string source;     // of the peer's figure
  std::function<Measured()> run;
};

// `tiny`: the same lines with sizes that take no time, to see that they run.
std::vector<SpeedCase> SpeedCases(bool tiny);

}  // namespace plancast

#endif  // PLANCAST_BENCHMARKS_SPEED_CASES_H_
