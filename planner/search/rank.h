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
#include "planner/fit/nearest_plan.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"
#include "planner/search/space.h"

namespace plancast {

// What makes a plan better. All objectives are per iteration of one batch, so
// plans of a ranking are comparable.
enum class Objective : uint8_t { kTime, kCost, kEnergy };
absl::StatusOr<Objective> ParseObjective(absl::string_view name);

struct RankOptions {
  SearchSpace space;
  Objective objective = Objective::kTime;
  int threads = 0;  // 0: one per core
  int64_t top = 0;  // keep the best; 0: all
  // Called now and then, on the calling thread; false stops the ranking with
  // kCancelled.
  std::function<bool(int64_t done, int64_t total)> progress;
  // Called once on the calling thread, before all but a few plans of a large space are
  // looked at: how many there are, and about how long they take together.
  std::function<void(int64_t plans, double seconds)> announce;
};

struct RankResult {
  std::vector<Forecast> plans;              // that fit, best first; ties in enumeration order
  int64_t evaluated = 0;                    // plans whose time was simulated
  std::string space;                        // canonical text
  std::map<std::string, int64_t> excluded;  // reason -> plans
  double seconds = 0;                       // wall time
  // Where no plan fits but some are simulated.
  std::optional<NearestPlan> nearest;
};

// Predicts every plan of a space for `job` (whose strategy is replaced) and
// orders them. Plans share `session` and run on several threads; the result
// does not depend on how many.
absl::StatusOr<RankResult> Rank(const Job& job, const Machine& machine, const Pricing& pricing,
                                Session& session, const RankOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_RANK_H_
