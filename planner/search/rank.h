#ifndef PLANCAST_PLANNER_SEARCH_RANK_H_
#define PLANCAST_PLANNER_SEARCH_RANK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/machine.h"
#include "compiler/session.h"
#include "graph/model/model_graph.h"
#include "planner/fit/nearest_plan.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"
#include "planner/search/objective.h"
#include "planner/search/space.h"
#include "strategy/short_form.h"

namespace plancast {

// How far a ranking has come.
struct RankProgress {
  int64_t done = 0, total = 0;      // plans: decided, and in all
  const ShortForm* best = nullptr;  // so far; null: none
  double value = 0;                 // of the objective, of that one
  double bound = 0;                 // what is left is at least this; 0: not known
};

struct RankOptions {
  SearchSpace space;
  Objective objective = Objective::kTime;
  int threads = 0;  // 0: one per core
  int64_t top = 0;  // keep the best; 0: all
  // Simulate all plans that fit, also where bounds tell that some are none of the best.
  bool exhaustive = false;
  // Of the best few: values of plans elsewhere that are to be beaten, too, such as of other types.
  std::vector<double> known;
  // Called now and then and at the end, on the calling thread; false stops the ranking, even if
  // nothing is left of it.
  std::function<bool(const RankProgress&)> progress;
  // A ranking that is stopped gives what it has found so far; else kCancelled.
  bool partial = false;
  // Of those only the best so many, the others are not described; 0: `top`.
  int64_t top_if_stopped = 0;
  // Called once on the calling thread, before all but a few plans of a large space are
  // simulated: how many there are, and about how long they take together.
  std::function<void(int64_t plans, double seconds)> announce;
};

struct RankResult {
  std::vector<Forecast> plans;              // that fit, best first; ties in enumeration order
  std::vector<double> values;               // of the objective, of these
  int64_t evaluated = 0;                    // plans whose time was simulated
  int64_t bounded = 0;                      // that are none of the best by their bounds
  std::string space;                        // canonical text
  std::map<std::string, int64_t> excluded;  // reason -> plans
  double seconds = 0;                       // wall time
  // Of a ranking that was stopped: plans that nothing is known of, and what the objective of
  // these and all others that are not simulated is at least (0: not known).
  bool stopped = false;
  int64_t open = 0;
  double bound = 0;
  // Where no plan fits but some are simulated.
  std::optional<NearestPlan> nearest;
};

// The plans of a space for one job, and the canonical text of the space.
struct JobSpace {
  Enumeration enumeration;
  std::string text;
};

// `graph`: the model of `job` as drawn with the default choices.
absl::StatusOr<JobSpace> SpaceOf(const Job& job, const ModelGraph& graph, const Machine& machine,
                                 const SearchSpace& space);

// Predicts the plans of a space for `job` (whose strategy is replaced) and
// orders them. Plans share `session` and run on several threads; the result
// does not depend on how many. Of the best few, only plans are simulated whose bound
// (planner/bound) is not above what the last of these takes: no other can be among them.
absl::StatusOr<RankResult> Rank(const Job& job, const Machine& machine, const Pricing& pricing,
                                Session& session, const RankOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_RANK_H_
