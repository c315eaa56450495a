#include "planner/search/rank.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "planner/forecast/plan_graph.h"
#include "planner/search/best_first.h"
#include "planner/search/evaluator.h"
#include "planner/search/parallel_for.h"
#include "planner/search/recompute_words.h"

namespace plancast {
namespace {

using Clock = std::chrono::steady_clock;

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

// A ranking under way. Every plan of the space has an outcome, at first of nothing.
class Ranking {
 public:
  Ranking(const Job& job, const Machine& machine, const Pricing& pricing, Session& session,
          const RankOptions& options, const std::vector<ShortForm>& plans)
      : options_(options),
        plans_(plans),
        count_(static_cast<int64_t>(plans.size())),
        all_(options.top <= 0 || options.top >= count_),
        outcomes_(plans.size()) {
    threads_ = options.threads > 0 ? options.threads
                                   : std::max<int>(1, std::thread::hardware_concurrency());
    threads_ = static_cast<int>(std::min<int64_t>(threads_, std::max<int64_t>(count_, 1)));
    for (int t = 0; t < threads_; ++t) {
      evaluators_.emplace_back(job, machine, pricing, session, options.objective);
    }
  }

  // Simulates every plan. False, here and below: the ranking was stopped.
  bool TryAll() {
    std::vector<int64_t> order = AlikeTogether(plans_);
    const int64_t sampled = count_ >= 8 * kSampled ? kSampled : 0;
    if (sampled > 0) SampleFirst(&order);
    const Clock::time_point begin = Clock::now();
    const absl::Span<const int64_t> span = order;
    if (!Simulate(span.first(sampled))) return false;
    if (sampled > 0 && options_.announce) {
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      options_.announce(count_,
                        seconds * static_cast<double>(count_) / static_cast<double>(sampled));
    }
    return Simulate(span.subspan(sampled));
  }

  // Simulates plans best bound first, until none that is left can be among the best.
  // `level`: of the software beyond what is simulated.
  bool TryBestBounds(const SoftwareLevel& level) {
    // A plan that recomputes is bounded by what it is without, and looked at by itself only where
    // that may be among the best.
    const std::vector<int64_t> without = WithoutRecompute(plans_);
    std::vector<char> bounds_others(plans_.size(), 0);
    std::vector<int64_t> first;
    for (const int64_t plan : AlikeTogether(plans_)) {
      if (without[plan] == plan) {
        first.push_back(plan);
      } else {
        bounds_others[without[plan]] = 1;
      }
    }
    const auto ask = [&](const std::vector<int64_t>& plans) {
      return ParallelFor(
          static_cast<int64_t>(plans.size()), threads_,
          [&](int64_t i, int thread) {
            const int64_t plan = plans[i];
            outcomes_[plan] =
                evaluators_[thread].Bound(plans_[plan], level, bounds_others[plan] != 0);
          },
          [&](int64_t) { return Report(); });
    };
    if (!ask(first)) return false;
    std::vector<BestFirst::Bound> bounds;
    for (int64_t i = 0; i < count_; ++i) {
      const bool own = without[i] == i;
      if (!own || outcomes_[i].excluded.empty()) {
        bounds.push_back({i, outcomes_[without[i]].value, own});
      }
    }
    decided_ = count_ - static_cast<int64_t>(bounds.size());
    BestFirst order(bounds, options_.top, options_.known);
    for (;;) {
      const std::vector<int64_t> asked = order.ToAsk();
      if (!ask(asked)) return false;
      for (const int64_t plan : asked) {
        const Outcome& outcome = outcomes_[plan];
        const bool fits = outcome.excluded.empty();
        order.Asked(plan, fits ? std::make_optional(outcome.value) : std::nullopt);
        if (!fits) ++decided_;
      }
      if (!asked.empty()) continue;
      const std::vector<int64_t> round = order.NextRound();
      if (round.empty()) break;
      bound_ = order.bound();
      if (!Simulate(round)) return false;
      for (const int64_t plan : round) {
        if (outcomes_[plan].evaluated) order.Found(outcomes_[plan].value);
      }
    }
    bounded_ = order.left();
    decided_ = count_;
    return Report();
  }

  // Takes up what was found. Plans that are listed are described only now, where not all are.
  void Finish(bool finished, RankResult* result) {
    std::vector<int64_t> best = Simulated();
    result->evaluated = static_cast<int64_t>(best.size());
    result->bounded = bounded_;
    int64_t open = count_ - result->evaluated - bounded_;
    for (int64_t i = 0; i < count_; ++i) {
      if (outcomes_[i].excluded.empty()) continue;
      ++result->excluded[outcomes_[i].excluded];
      --open;
    }
    if (!finished) {
      result->stopped = true;
      result->open = open;  // not by the last report: threads end what they have begun
      result->bound = bound_;
    }
    std::stable_sort(best.begin(), best.end(),
                     [&](int64_t a, int64_t b) { return outcomes_[a].value < outcomes_[b].value; });
    int64_t most = all_ ? count_ : options_.top;
    if (!finished && options_.top_if_stopped > 0) most = std::min(most, options_.top_if_stopped);
    if (static_cast<int64_t>(best.size()) > most) best.resize(most);
    if (!all_) {
      ParallelFor(static_cast<int64_t>(best.size()), threads_, [&](int64_t i, int thread) {
        outcomes_[best[i]] = evaluators_[thread].Evaluate(plans_[best[i]], true);
      });
    }
    for (const int64_t i : best) {
      if (outcomes_[i].forecast != nullptr) {
        result->plans.push_back(*std::move(outcomes_[i].forecast));
        result->values.push_back(outcomes_[i].value);
      } else {
        ++result->excluded[outcomes_[i].excluded];
      }
    }
  }

  std::vector<ShortForm> Unfit() const {
    std::vector<ShortForm> unfit;
    for (int64_t i = 0; i < count_; ++i) {
      if (outcomes_[i].excluded == kUnfit) unfit.push_back(plans_[i]);
    }
    return unfit;
  }

 private:
  bool Simulate(absl::Span<const int64_t> order) {
    const int64_t before = decided_;
    const bool finished = ParallelFor(
        static_cast<int64_t>(order.size()), threads_,
        [&](int64_t i, int thread) {
          outcomes_[order[i]] = evaluators_[thread].Evaluate(plans_[order[i]], all_);
        },
        [&](int64_t done) {
          decided_ = before + done;
          return Report();
        });
    if (finished) decided_ = before + static_cast<int64_t>(order.size());
    for (const int64_t plan : order) {
      if (!outcomes_[plan].evaluated) continue;
      if (best_ < 0 || outcomes_[plan].value < outcomes_[best_].value) best_ = plan;
    }
    return finished;
  }

  bool Report() const {
    if (!options_.progress) return true;
    RankProgress progress;
    progress.done = decided_;
    progress.total = count_;
    progress.bound = bound_;
    if (best_ >= 0) {
      progress.best = &plans_[best_];
      progress.value = outcomes_[best_].value;
    }
    return options_.progress(progress);
  }

  std::vector<int64_t> Simulated() const {
    std::vector<int64_t> simulated;
    for (int64_t i = 0; i < count_; ++i) {
      if (outcomes_[i].evaluated) simulated.push_back(i);
    }
    return simulated;
  }

  const RankOptions& options_;
  const std::vector<ShortForm>& plans_;
  const int64_t count_;
  const bool all_;  // are listed
  int threads_ = 1;
  std::deque<Evaluator> evaluators_;
  std::vector<Outcome> outcomes_;
  int64_t best_ = -1;  // plan
  int64_t decided_ = 0, bounded_ = 0;
  double bound_ = 0;  // of what is left
};

}  // namespace

absl::StatusOr<JobSpace> SpaceOf(const Job& job, const ModelGraph& graph, const Machine& machine,
                                 const SearchSpace& space) {
  const PlanContext context = ContextOf(graph, machine, job.global_batch);
  const SearchBounds bounds{machine.gpus_per_domain(),
                            job.profile.limits,
                            job.profile.name,
                            job.profile.data_parallel.overlap,
                            RecomputeSetsOf(graph, job.profile),
                            UsualRecomputeSetsOf(graph, job.profile)};
  JobSpace result;
  ASSIGN_OR_RETURN(result.enumeration, EnumeratePlans(space, context, bounds));
  result.text = PrintSearchSpace(space, bounds, context.experts > 0, context.seq);
  return result;
}

absl::StatusOr<RankResult> Rank(const Job& job, const Machine& machine, const Pricing& pricing,
                                Session& session, const RankOptions& options) {
  const Clock::time_point begin = Clock::now();
  RETURN_IF_ERROR(CheckObjective(machine, options.objective));
  ASSIGN_OR_RETURN(const ModelGraph graph, job.model->Draw({}));
  ASSIGN_OR_RETURN(JobSpace space, SpaceOf(job, graph, machine, options.space));

  Ranking ranking(job, machine, pricing, session, options, space.enumeration.plans);
  // By runs of the user's own, what a plan takes is not a matter of its simulated time alone.
  const bool by_bounds = options.top > 0 && !options.exhaustive && pricing.learned() == nullptr;
  const bool finished =
      by_bounds ? ranking.TryBestBounds(pricing.Level(job.profile, graph)) : ranking.TryAll();
  if (!finished && !options.partial) return absl::CancelledError("the ranking was stopped");

  RankResult result;
  result.space = std::move(space.text);
  result.excluded = std::move(space.enumeration.excluded);
  ranking.Finish(finished, &result);
  if (finished && result.plans.empty() && result.excluded.count(std::string(kUnfit)) > 0) {
    ASSIGN_OR_RETURN(result.nearest,
                     FindNearestPlan(job, machine, pricing, session, ranking.Unfit()));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

}  // namespace plancast
