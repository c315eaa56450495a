#include "executor/cluster/steady_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace plancast {
namespace {

// Roundings of one period: each event rounds its time up by less than a picosecond.
constexpr int64_t kRounding = 64;
// Of a period: nearer is the same.
constexpr int64_t kPerPeriod = 1'000'000'000;
// Events for each loop in which the slowest begins nothing.
constexpr int64_t kMostQuiet = 64;
constexpr size_t kMostMoments = 256;

SteadyRun::Moment MomentOf(LoopSet& set) {
  SteadyRun::Moment moment;
  moment.time = set.now();
  moment.positions = set.Positions();
  for (int m = 0; m < set.size(); ++m) moment.iterations.push_back(set.IterationsOf(m));
  moment.waits = set.wait_seconds();
  return moment;
}

SteadyRun::Period Between(const SteadyRun::Moment& a, const SteadyRun::Moment& b, int64_t apart) {
  SteadyRun::Period period;
  period.time_ps = b.time - a.time;
  period.apart_ps = apart;
  for (size_t m = 0; m < a.iterations.size(); ++m) {
    period.iterations.push_back(b.iterations[m] - a.iterations[m]);
  }
  period.waits = b.waits;
  for (size_t w = 0; w < a.waits.size(); ++w) period.waits[w] -= a.waits[w];
  return period;
}

// The loop with the longest iteration but for so many.
int Slowest(const LoopSet& set, int passed_over) {
  std::vector<int> loops(set.size());
  std::iota(loops.begin(), loops.end(), 0);
  std::stable_sort(loops.begin(), loops.end(), [&](int a, int b) {
    return set.loop(a).IterationPs() > set.loop(b).IterationPs();
  });
  return loops[passed_over];
}

}  // namespace

SteadyRun::SteadyRun(LoopSet origin, const Options& options)
    : options_(options), origin_(std::make_unique<LoopSet>(std::move(origin))) {
  Find();
}

// Takes the nearest earlier moment, against the time since, if it is nearer than any pair before;
// whether it is the same.
bool SteadyRun::Compare(LoopSet& run, const std::vector<Moment>& moments) {
  if (moments.empty()) return false;
  const Moment now = MomentOf(run);
  for (auto then = moments.rbegin(); then != moments.rend(); ++then) {
    const int64_t apart = run.Distance(now.positions, then->positions);
    const int64_t time = now.time - then->time;
    if (found_ && int128{apart} * period_.time_ps >= int128{period_.apart_ps} * time) continue;
    found_ = true;
    period_ = Between(*then, now, apart);
    again_ = std::make_unique<LoopSet>(run);
    const int64_t same = std::max(kRounding * run.size(), time / kPerPeriod);
    if (apart <= same) return true;
  }
  return false;
}

void SteadyRun::Find() {
  at_end_ = std::make_unique<LoopSet>(*origin_);
  LoopSet& run = *at_end_;
  // The loop whose beginnings are the moments, and when it began last.
  int slowest = Slowest(run, 0);
  int64_t seen = run.IterationsOf(slowest), events = 0, quiet = 0;
  int passed_over = 0;
  std::vector<Moment> moments;
  while (run.stopped().empty() && run.now() < kLatest) {
    if (options_.shortcuts && run.now() >= options_.whole_until &&
        run.IterationsOf(slowest) != seen) {
      seen = run.IterationsOf(slowest);
      quiet = 0;
      if (Compare(run, moments)) break;
      if (found_ && (events > options_.most_events || moments.size() >= kMostMoments)) break;
      moments.push_back(MomentOf(run));
    } else if (++quiet > kMostQuiet * run.size() && passed_over + 1 < run.size()) {
      // It hardly gets anywhere beside the others, whose beginnings are the moments then.
      slowest = Slowest(run, ++passed_over);
      seen = run.IterationsOf(slowest);
      quiet = 0;
      moments.clear();
    }
    run.AdvanceTo(run.NextEvent());
    ++events;
  }
  if (!run.stopped().empty() || run.now() >= kLatest) {
    found_ = false;
    end_ = std::min(run.now(), kLatest);
    return;
  }
  bool ends = false;
  for (int m = 0; m < run.size(); ++m) ends = ends || run.target(m) != LoopSet::kNever;
  at_end_ = std::make_unique<LoopSet>(*again_);
  if (!ends) return;
  LeaveOut(*at_end_, kLatest);
  while (at_end_->stopped().empty() && at_end_->now() < kLatest) {
    at_end_->AdvanceTo(at_end_->NextEvent());
  }
  end_ = std::min(at_end_->now(), kLatest);
}

void SteadyRun::LeaveOut(LoopSet& set, int64_t limit) const {
  int64_t times = (limit - set.now()) / period_.time_ps;
  for (int m = 0; m < set.size(); ++m) {
    if (period_.iterations[m] == 0 || set.target(m) == LoopSet::kNever) continue;
    times = std::min(times, (set.target(m) - 1 - set.IterationsOf(m)) / period_.iterations[m]);
  }
  if (times <= 0) return;
  std::vector<int64_t> iterations = period_.iterations;
  std::vector<double> waits = period_.waits;
  for (int64_t& n : iterations) n *= times;
  for (double& w : waits) w *= static_cast<double>(times);
  set.Skip(times * period_.time_ps, iterations, waits);
}

LoopSet SteadyRun::At(int64_t time_ps) const {
  const bool from_period = found_ && again_->now() <= time_ps;
  LoopSet set = from_period ? *again_ : *origin_;
  if (from_period) LeaveOut(set, time_ps);
  for (int64_t next = set.NextEvent(); next <= time_ps && set.stopped().empty();
       next = set.NextEvent()) {
    set.AdvanceTo(next);
  }
  if (set.now() < time_ps) set.AdvanceTo(time_ps);
  return set;
}

double SteadyRun::off_by() const {
  return found_ ? static_cast<double>(period_.apart_ps) / static_cast<double>(period_.time_ps) : 0;
}

}  // namespace plancast
