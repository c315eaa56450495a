#ifndef PLANCAST_PLANNER_SEARCH_EVALUATOR_H_
#define PLANCAST_PLANNER_SEARCH_EVALUATOR_H_

#include <memory>
#include <string>

#include "cluster/machine.h"
#include "compiler/session.h"
#include "planner/bound/time_bound.h"
#include "planner/fit/fits.h"
#include "planner/forecast/forecast.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"
#include "planner/search/objective.h"
#include "strategy/short_form.h"

namespace plancast {

// Why a plan is not ranked that was looked at and found too large.
inline constexpr absl::string_view kUnfit = "does not fit in memory";

// What became of one plan.
struct Outcome {
  bool evaluated = false;              // it fits, and its time was simulated
  double value = 0;                    // of the objective, if so; else what it is at least, or 0
  std::unique_ptr<Forecast> forecast;  // if asked for
  std::string excluded;                // or why it is none
};

// Evaluates plans of one job, for one thread. No exception of what is used ends a ranking, such
// as one for want of memory: the plan is excluded for it.
class Evaluator {
 public:
  // All but `job` must outlive this.
  Evaluator(const Job& job, const Machine& machine, const Pricing& pricing, Session& session,
            Objective objective)
      : job_(job), machine_(machine), pricing_(pricing), session_(session), objective_(objective) {}

  // By its simulation; `describe`: with the whole forecast.
  Outcome Evaluate(const ShortForm& plan, bool describe);
  // Without one: whether it fits, and what it is at least, `of_unfit` also if it does not;
  // `level`: of the software beyond what is simulated.
  Outcome Bound(const ShortForm& plan, const SoftwareLevel& level, bool of_unfit);

 private:
  Job job_;
  const Machine& machine_;
  const Pricing& pricing_;
  Session& session_;
  const Objective objective_;
  std::unique_ptr<GraphWorkspace> workspace_ = std::make_unique<GraphWorkspace>();
  std::unique_ptr<FitCheck> fits_;
  std::unique_ptr<TimeBound> bound_;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_EVALUATOR_H_
