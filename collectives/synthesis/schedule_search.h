#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_SEARCH_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_SEARCH_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/synthesis/link_graph.h"
#include "collectives/synthesis/problem.h"

namespace plancast {

struct SearchResult {
  enum class Answer { kFound, kNone, kGaveUp };
  Answer answer = Answer::kGaveUp;
  SynchronousSchedule schedule;  // of kFound
  // What shows that there is none: `bound` (no way of dealing rounds to steps
  // lets every node's chunks flow to it) or `search` (every one was searched to
  // the end).
  std::string proof;
  int64_t conflicts = 0;
};

// A schedule of exactly `steps` steps and `rounds` rounds. Tries every way of
// dealing rounds to steps: first whether flows exist, then schedules that a group
// of automorphisms keeps, then all. Gives up after `conflicts` of them, or after
// kMostSearchWork. OutOfRange for questions of more variables or ways than a search takes.
inline constexpr int64_t kMostSearchWork = 20'000'000'000;  // some minutes
inline constexpr int64_t kMostSearchVariables = 1'000'000, kMostDeals = 10'000;
absl::StatusOr<SearchResult> FindSchedule(const LinkGraph& graph, const SynthesisProblem& problem,
                                          int32_t steps, int32_t rounds, int64_t conflicts);

// InvalidArgument unless the schedule keeps the rules: a node sends what it had
// before the step, links pass what they can, every need is met.
absl::Status VerifySchedule(const LinkGraph& graph, const SynthesisProblem& problem,
                            const SynchronousSchedule& schedule);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_SEARCH_H_
