#include "planner/search/rank.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/threads.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/ranked_prediction.h"

namespace plancast {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::string_view kUnfit = "does not fit in memory";

// What became of one plan.
struct Outcome {
  bool evaluated = false;              // it fits, and its time was simulated
  double value = 0;                    // of the objective, if so
  std::unique_ptr<Forecast> forecast;  // if asked for
  std::string excluded;                // or why it is none
};

// Why a plan is not ranked: what is wrong with it, or a defect or lack of ours, which
// ends no ranking.
std::string WhyExcluded(const absl::Status& status) {
  const bool refused = status.code() == absl::StatusCode::kInvalidArgument ||
                       status.code() == absl::StatusCode::kNotFound ||
                       status.code() == absl::StatusCode::kUnimplemented ||
                       status.code() == absl::StatusCode::kFailedPrecondition;
  return absl::StrCat(refused ? "" : "could not be simulated: ", status.message());
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

// Evaluates plans of one job, for one thread.
class Evaluator {
 public:
  Evaluator(const Job& job, const Machine& machine, const Pricing& pricing, Session& session,
            Objective objective)
      : job_(job), machine_(machine), pricing_(pricing), session_(session), objective_(objective) {}

  // `describe`: with the whole forecast.
  Outcome Evaluate(const ShortForm& plan, bool describe) {
    job_.strategy.plan() = plan;
    absl::StatusOr<Forecast> forecast = PredictOrSayWhy(describe);
    Outcome outcome;
    if (!forecast.ok()) {
      outcome.excluded = WhyExcluded(forecast.status());
    } else if (!forecast->fits) {
      outcome.excluded = std::string(kUnfit);
    } else {
      outcome.evaluated = true;
      outcome.value = Value(*forecast, objective_);
      if (describe) outcome.forecast = std::make_unique<Forecast>(*std::move(forecast));
    }
    return outcome;
  }

 private:
  // No exception of what we use ends the ranking, such as one for want of memory.
  absl::StatusOr<Forecast> PredictOrSayWhy(bool describe) {
    try {
      return PredictOneOfMany(
          job_, machine_, pricing_, session_, [describe](const Forecast&) { return describe; },
          workspace_.get());
    } catch (const std::bad_alloc&) {
      workspace_ = std::make_unique<GraphWorkspace>();  // how it was left is not known
      return absl::ResourceExhaustedError("there is not enough memory for it on this computer");
    } catch (const std::exception& error) {
      workspace_ = std::make_unique<GraphWorkspace>();
      return absl::InternalError(error.what());
    }
  }

  Job job_;
  const Machine& machine_;
  const Pricing& pricing_;
  Session& session_;
  const Objective objective_;
  std::unique_ptr<GraphWorkspace> workspace_ = std::make_unique<GraphWorkspace>();
};

// The plans in an order in which those with equal programs follow one another
// (GraphWorkspace).
std::vector<int64_t> AlikeTogether(const std::vector<ShortForm>& plans) {
  const auto key = [&](int64_t i) {
    const ShortForm& plan = plans[i];
    // At one global batch, dp * mb says how many micro-batches there are.
    const int64_t samples = plan.dp.value_or(1) * plan.mb.value_or(1);
    const int64_t shards = plan.dp.value_or(1) > 1 ? plan.zero.value_or(0) : 0;
    return std::make_tuple(plan.pp.value_or(1), plan.vpp.value_or(1), samples, shards);
  };
  std::vector<int64_t> order(plans.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return key(a) < key(b); });
  return order;
}

// So many plans tell how long all of a large space take.
constexpr int64_t kSampled = 32;

// Moves plans from all over the order to its beginning.
void SampleFirst(std::vector<int64_t>* order) {
  const auto count = static_cast<int64_t>(order->size());
  std::vector<int64_t> sampled, rest;
  for (int64_t i = 0; i < count; ++i) {
    const bool first = i * kSampled / count != (i + 1) * kSampled / count;
    (first ? sampled : rest).push_back((*order)[i]);
  }
  sampled.insert(sampled.end(), rest.begin(), rest.end());
  *order = std::move(sampled);
}

// Runs `work(i, thread)` for i < count on `threads` threads, a few neighbours at a
// time, or as many as the system gives; the calling thread only reports, unless there is
// no other. False if the report asked to stop.
bool ParallelFor(int64_t count, int threads, const std::function<void(int64_t, int)>& work,
                 const std::function<bool(int64_t, int64_t)>& progress) {
  const int64_t together = std::clamp<int64_t>(count / (8 * threads), 1, 8);
  std::atomic<int64_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable finished;
  std::vector<std::thread> pool;
  const auto run = [&](int t) {
    for (int64_t begin; !stop && (begin = next.fetch_add(together)) < count;) {
      for (int64_t i = begin; !stop && i < std::min(begin + together, count); ++i) {
        work(i, t);
        if (++done < count) continue;
        std::lock_guard<std::mutex> lock(mutex);
        finished.notify_all();
      }
    }
  };
  for (int t = 0; t < threads; ++t) {
    if (!StartThread([&run, t] { run(t); }, pool)) break;
  }
  if (pool.empty()) run(0);
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

absl::Status CheckObjective(const DeviceType& device, Objective objective) {
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

absl::StatusOr<RankResult> Rank(const Job& job, const Machine& machine, const Pricing& pricing,
                                Session& session, const RankOptions& options) {
  const Clock::time_point begin = Clock::now();
  for (int s = 0; s < machine.num_sections(); ++s) {
    RETURN_IF_ERROR(CheckObjective(machine.section(s).device(), options.objective));
  }
  ASSIGN_OR_RETURN(const ModelGraph graph, job.model->Draw({}));
  const PlanContext context = ContextOf(graph, machine, job.global_batch);
  const SearchBounds bounds{machine.gpus_per_domain(), job.profile.limits, job.profile.name,
                            job.profile.data_parallel.overlap};
  ASSIGN_OR_RETURN(Enumeration enumeration, EnumeratePlans(options.space, context, bounds));

  const int64_t count = enumeration.plans.size();
  int threads =
      options.threads > 0 ? options.threads : std::max<int>(1, std::thread::hardware_concurrency());
  threads = static_cast<int>(std::min<int64_t>(threads, std::max<int64_t>(count, 1)));
  std::deque<Evaluator> evaluators;
  for (int t = 0; t < threads; ++t) {
    evaluators.emplace_back(job, machine, pricing, session, options.objective);
  }
  const bool all = options.top <= 0 || options.top >= count;
  std::vector<int64_t> order = AlikeTogether(enumeration.plans);
  const int64_t sampled = count >= 8 * kSampled ? kSampled : 0;
  if (sampled > 0) SampleFirst(&order);
  std::vector<Outcome> outcomes(count);
  const auto evaluate = [&](int64_t from, int64_t to) {
    return ParallelFor(
        to - from, threads,
        [&](int64_t i, int thread) {
          const int64_t plan = order[from + i];
          outcomes[plan] = evaluators[thread].Evaluate(enumeration.plans[plan], all);
        },
        [&](int64_t done, int64_t) {
          return !options.progress || options.progress(from + done, count);
        });
  };
  bool finished = evaluate(0, sampled);
  if (finished && sampled > 0 && options.announce) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    options.announce(count, seconds * static_cast<double>(count) / static_cast<double>(sampled));
  }
  finished = finished && evaluate(sampled, count);
  if (!finished) return absl::CancelledError("the ranking was stopped");

  RankResult result;
  result.space = PrintSearchSpace(options.space, bounds, context.experts > 0, context.seq);
  result.excluded = std::move(enumeration.excluded);
  std::vector<int64_t> best;
  for (int64_t i = 0; i < count; ++i) {
    if (outcomes[i].evaluated) {
      best.push_back(i);
    } else {
      ++result.excluded[outcomes[i].excluded];
    }
  }
  result.evaluated = static_cast<int64_t>(best.size());
  std::stable_sort(best.begin(), best.end(),
                   [&](int64_t a, int64_t b) { return outcomes[a].value < outcomes[b].value; });
  if (!all && static_cast<int64_t>(best.size()) > options.top) best.resize(options.top);
  // Only now is it known which ones are to be described.
  const auto listed = static_cast<int64_t>(best.size());
  if (!all) {
    ParallelFor(
        listed, threads,
        [&](int64_t i, int thread) {
          outcomes[best[i]] = evaluators[thread].Evaluate(enumeration.plans[best[i]], true);
        },
        nullptr);
  }
  for (int64_t i : best) {
    if (outcomes[i].forecast != nullptr) {
      result.plans.push_back(*std::move(outcomes[i].forecast));
    } else {
      ++result.excluded[outcomes[i].excluded];
    }
  }
  if (result.plans.empty() && result.excluded.count(std::string(kUnfit)) > 0) {
    std::vector<ShortForm> unfit;
    for (int64_t i = 0; i < count; ++i) {
      if (outcomes[i].excluded == kUnfit) unfit.push_back(std::move(enumeration.plans[i]));
    }
    ASSIGN_OR_RETURN(result.nearest, FindNearestPlan(job, machine, pricing, session, unfit));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

}  // namespace plancast
