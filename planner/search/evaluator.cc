#include "planner/search/evaluator.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/forecast/describe.h"
#include "planner/forecast/ranked_prediction.h"

namespace plancast {
namespace {

// Why a plan is not ranked: what is wrong with it, or a defect or lack of ours, which
// ends no ranking.
std::string WhyExcluded(const absl::Status& status) {
  const bool refused = status.code() == absl::StatusCode::kInvalidArgument ||
                       status.code() == absl::StatusCode::kNotFound ||
                       status.code() == absl::StatusCode::kUnimplemented ||
                       status.code() == absl::StatusCode::kFailedPrecondition;
  return absl::StrCat(refused ? "" : "could not be simulated: ", status.message());
}

// What `ask` answers, or the error that it throws; `forget` is called after one, for how things
// were left is not known.
template <typename Answer, typename Ask, typename Forget>
absl::StatusOr<Answer> Guarded(const Ask& ask, const Forget& forget) {
  try {
    return ask();
  } catch (const std::bad_alloc&) {
    forget();
    return absl::ResourceExhaustedError("there is not enough memory for it on this computer");
  } catch (const std::exception& error) {
    forget();
    return absl::InternalError(error.what());
  }
}

}  // namespace

Outcome Evaluator::Evaluate(const ShortForm& plan, bool describe) {
  job_.strategy.plan() = plan;
  absl::StatusOr<Forecast> forecast = Guarded<Forecast>(
      [&] {
        return PredictOneOfMany(
            job_, machine_, pricing_, session_, [describe](const Forecast&) { return describe; },
            workspace_.get());
      },
      [&] { workspace_ = std::make_unique<GraphWorkspace>(); });
  Outcome outcome;
  if (!forecast.ok()) {
    outcome.excluded = WhyExcluded(forecast.status());
  } else if (!forecast->fits) {
    outcome.excluded = std::string(kUnfit);
  } else {
    outcome.evaluated = true;
    outcome.value = ValueOf(*forecast, objective_);
    if (describe) outcome.forecast = std::make_unique<Forecast>(*std::move(forecast));
  }
  return outcome;
}

Outcome Evaluator::Bound(const ShortForm& plan, const SoftwareLevel& level, bool of_unfit) {
  const absl::StatusOr<FitVerdict> verdict = Guarded<FitVerdict>(
      [&] {
        if (fits_ == nullptr) {
          fits_ = std::make_unique<FitCheck>(job_, machine_, session_, &pricing_);
          bound_ = std::make_unique<TimeBound>(job_.profile, machine_, pricing_);
        }
        return fits_->Verdict(plan, bound_.get(), of_unfit);
      },
      [&] { fits_ = nullptr; });  // and with it the bound
  Outcome outcome;
  if (!verdict.ok()) {
    outcome.excluded = WhyExcluded(verdict.status());
    return outcome;
  }
  if (!verdict->fits) outcome.excluded = std::string(kUnfit);
  if (verdict->fits || of_unfit) {
    Forecast least;
    FillTime(machine_, bound_->Picoseconds(), level, &least);
    outcome.value = ValueOf(least, objective_);
  }
  return outcome;
}

}  // namespace plancast
