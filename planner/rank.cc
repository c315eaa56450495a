#include "planner/rank.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "planner/plan_graph.h"

namespace plancast {
namespace {

using Clock = std::chrono::steady_clock;

// What became of one plan.
struct Outcome {
  bool evaluated = false;              // it fits, and its time was simulated
  std::unique_ptr<Forecast> forecast;  // if it may be among those to list
  std::string excluded;                // or why it is none
  absl::Status failure;                // or a defect of ours
};

bool IsRefusal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kNotFound ||
         status.code() == absl::StatusCode::kUnimplemented ||
         status.code() == absl::StatusCode::kFailedPrecondition;
}

double Value(const Forecast& forecast, Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return forecast.usd_per_iteration;
    case Objective::kEnergy:
      return forecast.kwh_per_iteration;
    case Objective::kTime:
      break;
  }
  return forecast.iteration_time_s;
}

// The value of the `top`th best plan seen so far: a forecast that is worse will
// not be listed. Plans of one value keep each other, so that ties are settled in
// the order of enumeration.
class Bar {
 public:
  explicit Bar(int64_t top) : top_(top) {}

  // Whether a plan of this value may still be among the best.
  bool Passes(double value) {
    if (top_ <= 0) return true;
    std::lock_guard<std::mutex> lock(mutex_);
    if (static_cast<int64_t>(best_.size()) == top_ && value > best_.top()) return false;
    best_.push(value);
    if (static_cast<int64_t>(best_.size()) > top_) best_.pop();
    return true;
  }

 private:
  const int64_t top_;
  std::mutex mutex_;
  std::priority_queue<double> best_;  // the worst of the best on top
};

Outcome Evaluate(const Job& job, const ShortForm& plan, const Machine& machine,
                 const KernelCostModel& costs, Session& session, Objective objective, Bar& bar) {
  Outcome outcome;
  bool wanted = false;
  Job one = job;
  one.strategy = StrategyTree::FromShortForm(plan);
  PredictOptions options;
  options.one_of_many = true;
  options.wanted = [&](const Forecast& plan) {
    wanted = bar.Passes(Value(plan, objective));
    return wanted;
  };
  absl::StatusOr<Forecast> forecast = Predict(one, machine, costs, session, options);
  if (!forecast.ok()) {
    if (IsRefusal(forecast.status())) {
      outcome.excluded = std::string(forecast.status().message());
    } else {
      outcome.failure = StatusBuilder(forecast.status()) << "plan `" << PrintShortForm(plan) << "`";
    }
  } else if (!forecast->fits) {
    outcome.excluded = "does not fit in memory";
  } else {
    outcome.evaluated = true;
    if (wanted) {
      outcome.forecast = std::make_unique<Forecast>(*std::move(forecast));
    }
  }
  return outcome;
}

// Runs `work(i)` for i < count on `threads` threads; the calling thread only
// reports. False if the report asked to stop.
bool ParallelFor(int64_t count, int threads, const std::function<void(int64_t)>& work,
                 const std::function<bool(int64_t, int64_t)>& progress) {
  std::atomic<int64_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable finished;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&] {
      for (int64_t i; !stop && (i = next++) < count;) {
        work(i);
        if (++done == count) {
          std::lock_guard<std::mutex> lock(mutex);
          finished.notify_all();
        }
      }
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    while (done < count && !stop) {
      finished.wait_for(lock, std::chrono::milliseconds(100));
      if (progress && !progress(done, count)) stop = true;
    }
  }
  for (std::thread& thread : pool) thread.join();
  return !stop;
}

absl::Status CheckObjective(const Machine& machine, Objective objective) {
  const DeviceType& device = machine.device();
  if (objective == Objective::kCost && device.usd_per_hour <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the price of a ", device.name,
                     " is not known, so plans cannot be ranked by cost. Give `usd_per_hour` in a "
                     "machine file, or rank by time."));
  }
  if (objective == Objective::kEnergy && device.tdp_watts <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the power of a ", device.name,
                     " is not known, so plans cannot be ranked by energy. Give `tdp_watts` in a "
                     "machine file, or rank by time."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Objective> ParseObjective(absl::string_view name) {
  if (name == "time") return Objective::kTime;
  if (name == "cost") return Objective::kCost;
  if (name == "energy") return Objective::kEnergy;
  if (name == "goodput")
    return absl::InvalidArgumentError(
        "not supported yet: objective `goodput`. "
        "Rank by time, cost or energy.");
  return absl::InvalidArgumentError(absl::StrCat("no objective `", name,
                                                 "`; there are `time`, `cost` and `energy`.",
                                                 DidYouMean(name, {"time", "cost", "energy"})));
}

absl::StatusOr<RankResult> Rank(const Job& job, const Machine& machine,
                                const KernelCostModel& costs, Session& session,
                                const RankOptions& options) {
  const Clock::time_point begin = Clock::now();
  RETURN_IF_ERROR(CheckObjective(machine, options.objective));
  ASSIGN_OR_RETURN(const ModelGraph graph, job.model->Draw({}));
  const PlanContext context = ContextOf(graph, machine, job.global_batch);
  ASSIGN_OR_RETURN(Enumeration enumeration,
                   EnumeratePlans(options.space, context, machine.gpus_per_domain()));

  const int64_t count = enumeration.plans.size();
  std::vector<Outcome> outcomes(count);
  Bar bar(options.top);
  int threads =
      options.threads > 0 ? options.threads : std::max<int>(1, std::thread::hardware_concurrency());
  threads = static_cast<int>(std::min<int64_t>(threads, std::max<int64_t>(count, 1)));
  const bool finished = ParallelFor(
      count, threads,
      [&](int64_t i) {
        outcomes[i] =
            Evaluate(job, enumeration.plans[i], machine, costs, session, options.objective, bar);
      },
      options.progress);
  if (!finished) return absl::CancelledError("the ranking was stopped");

  RankResult result;
  result.space = PrintSearchSpace(options.space, machine.gpus_per_domain());
  result.excluded = std::move(enumeration.excluded);
  for (Outcome& outcome : outcomes) {
    RETURN_IF_ERROR(outcome.failure);
    result.evaluated += outcome.evaluated ? 1 : 0;
    if (!outcome.evaluated) ++result.excluded[outcome.excluded];
    if (outcome.forecast) result.plans.push_back(*std::move(outcome.forecast));
  }
  std::stable_sort(result.plans.begin(), result.plans.end(),
                   [&](const Forecast& a, const Forecast& b) {
                     return Value(a, options.objective) < Value(b, options.objective);
                   });
  if (options.top > 0 && static_cast<int64_t>(result.plans.size()) > options.top) {
    result.plans.resize(options.top);
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

}  // namespace plancast
