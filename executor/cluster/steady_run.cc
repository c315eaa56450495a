#include "executor/cluster/steady_run.h"

#include <algorithm>
#include <utility>

namespace plancast {
namespace {

// Roundings of one period: each event rounds its time up by less than a picosecond.
constexpr int64_t kRounding = 64;
// Of the slowest iteration: nearer is the same.
constexpr int64_t kPerIteration = 1'000'000'000;
constexpr size_t kMostMoments = 256;

struct Moment {
  int64_t time = 0;
  std::vector<int64_t> positions, iterations;
  std::vector<double> waits;
};

Moment MomentOf(LoopSet& set) {
  Moment moment;
  moment.time = set.now();
  moment.positions = set.Positions();
  for (int m = 0; m < set.size(); ++m) moment.iterations.push_back(set.IterationsOf(m));
  moment.waits = set.wait_seconds();
  return moment;
}

SteadyRun::Period Between(const Moment& a, const Moment& b, int64_t apart) {
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

// The loop whose beginnings are the moments: the one with the longest iteration.
int Slowest(const LoopSet& set) {
  int slowest = 0;
  for (int m = 1; m < set.size(); ++m) {
    if (set.loop(m).IterationPs() > set.loop(slowest).IterationPs()) slowest = m;
  }
  return slowest;
}

}  // namespace

SteadyRun::SteadyRun(LoopSet origin, const Options& options)
    : options_(options), origin_(std::make_unique<LoopSet>(std::move(origin))) {
  Find();
}

void SteadyRun::Find() {
  at_end_ = std::make_unique<LoopSet>(*origin_);
  LoopSet& run = *at_end_;
  const int slowest = Slowest(run);
  const int64_t same =
      std::max(kRounding * run.size(), run.loop(slowest).IterationPs() / kPerIteration);
  std::vector<Moment> moments;
  int64_t seen = -1, events = 0;
  while (run.stopped().empty()) {
    if (options_.shortcuts && run.now() >= options_.whole_until &&
        run.IterationsOf(slowest) != seen) {
      seen = run.IterationsOf(slowest);
      Moment now = MomentOf(run);
      for (auto then = moments.rbegin(); then != moments.rend(); ++then) {
        const int64_t apart = run.Distance(now.positions, then->positions);
        if (found_ && apart >= period_.apart_ps) continue;
        found_ = true;
        period_ = Between(*then, now, apart);
        again_ = std::make_unique<LoopSet>(run);
        if (apart <= same) break;
      }
      if (found_ && (period_.apart_ps <= same || events > options_.most_events ||
                     moments.size() >= kMostMoments)) {
        break;
      }
      moments.push_back(std::move(now));
    }
    run.AdvanceTo(run.NextEvent());
    ++events;
  }
  if (!run.stopped().empty()) {
    found_ = false;
    end_ = run.now();
    return;
  }
  bool ends = false;
  for (int m = 0; m < run.size(); ++m) ends = ends || run.target(m) != LoopSet::kNever;
  at_end_ = std::make_unique<LoopSet>(*again_);
  if (!ends) return;
  LeaveOut(*at_end_, LoopSet::kNever);
  while (at_end_->stopped().empty()) at_end_->AdvanceTo(at_end_->NextEvent());
  end_ = at_end_->now();
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
