#include "executor/cluster/priorities.h"

#include <algorithm>
#include <limits>
#include <random>

#include "base/picoseconds.h"
#include "executor/cluster/steady_run.h"

namespace plancast {
namespace {

constexpr double kMostIntensity = 1e30;
constexpr double kMostCorrection = 1e3;
constexpr int kOrders = 10;  // as in the paper
constexpr int32_t kMostForSeveralOrders = 256;

// Its phases on one link that it fills.
Loop OnOneLink(const Loop& loop, int64_t capacity, int32_t priority) {
  Loop one;
  one.uses = {{0, int64_t{1} << 20}};
  one.priority = priority;
  one.alone_level = AloneLevel(one.uses, {capacity}, 1, std::numeric_limits<int64_t>::max());
  for (size_t p = 0; p < loop.phases.size(); ++p) {
    one.phases.push_back(
        {loop.phases[p].compute_ps, int128{loop.TransferPs(static_cast<int>(p))} * one.AloneQ16()});
  }
  return one;
}

// Iterations a second of the two.
std::pair<double, double> Pace(const Loop& first, const Loop& second, int64_t capacity) {
  LoopSet::Options options;
  options.sharing = LinkSharing::kPriority;
  const int64_t capacities[] = {capacity};
  const SteadyRun run(
      LoopSet({{&first, LoopState::Fresh(first)}, {&second, LoopState::Fresh(second)}}, capacities,
              0, options),
      {});
  const SteadyRun::Period& period = *run.period();
  const double seconds = ToSeconds(period.time_ps);
  return {static_cast<double>(period.iterations[0]) / seconds,
          static_cast<double>(period.iterations[1]) / seconds};
}

// Where to cut an order into at most `levels` pieces so that the weight inside of pieces is
// least, by dynamic programming.
double Cut(const std::vector<int32_t>& order, const std::vector<CompetingPair>& edges,
           int32_t levels, std::vector<int32_t>* level_of) {
  const auto n = static_cast<int32_t>(order.size());
  std::vector<int32_t> place(n);
  for (int32_t i = 0; i < n; ++i) place[order[i]] = i;
  // inside[i * n + j]: of the edges among places i to j.
  std::vector<double> inside(static_cast<size_t>(n) * n, 0.0);
  std::vector<std::vector<std::pair<int32_t, double>>> before(n);
  for (const CompetingPair& edge : edges) {
    const auto [low, high] = std::minmax(place[edge.first], place[edge.second]);
    before[high].emplace_back(low, edge.weight);
  }
  std::vector<double> onto(n);
  for (int32_t j = 0; j < n; ++j) {
    std::fill(onto.begin(), onto.end(), 0.0);
    for (const auto& [low, weight] : before[j]) onto[low] += weight;
    double sum = 0;
    for (int32_t i = j - 1; i >= 0; --i) {
      sum += onto[i];
      inside[static_cast<size_t>(i) * n + j] = inside[static_cast<size_t>(i) * n + j - 1] + sum;
    }
  }
  const double kNone = std::numeric_limits<double>::infinity();
  const int32_t pieces = std::min(levels, n);
  std::vector<std::vector<double>> best(pieces + 1, std::vector<double>(n + 1, kNone));
  std::vector<std::vector<int32_t>> from(pieces + 1, std::vector<int32_t>(n + 1, 0));
  best[0][0] = 0;
  for (int32_t k = 1; k <= pieces; ++k) {
    for (int32_t j = 1; j <= n; ++j) {
      for (int32_t i = k - 1; i < j; ++i) {
        const double cost = best[k - 1][i] + inside[static_cast<size_t>(i) * n + j - 1];
        if (cost < best[k][j]) {
          best[k][j] = cost;
          from[k][j] = i;
        }
      }
    }
  }
  level_of->assign(n, 0);
  for (int32_t k = pieces, j = n; k > 0; j = from[k][j], --k) {
    for (int32_t i = from[k][j]; i < j; ++i) (*level_of)[order[i]] = k - 1;
  }
  return best[pieces][n];
}

}  // namespace

double GpuIntensity(double work, const Loop& loop) {
  const double seconds = loop.uses.empty() ? 0 : ToSeconds(loop.CommunicationPs());
  return seconds > 0 ? std::min(work / seconds, kMostIntensity) : kMostIntensity;
}

double CorrectionFactor(const Loop& job, const Loop& reference) {
  constexpr int64_t kCapacity = 1'000'000'000;
  const double job_s = ToSeconds(job.CommunicationPs());
  const double reference_s = ToSeconds(reference.CommunicationPs());
  if (job_s <= 0 || reference_s <= 0) return 1;
  const auto [job_first, reference_last] =
      Pace(OnOneLink(job, kCapacity, 0), OnOneLink(reference, kCapacity, 1), kCapacity);
  const auto [job_last, reference_first] =
      Pace(OnOneLink(job, kCapacity, 1), OnOneLink(reference, kCapacity, 0), kCapacity);
  const double gain = job_s * (job_first - job_last);
  const double loss = reference_s * (reference_first - reference_last);
  constexpr double kNothing = 1e-6;
  if (gain < kNothing && loss < kNothing) return 1;
  if (loss * kMostCorrection <= gain) return kMostCorrection;
  return std::max(gain / loss, 1 / kMostCorrection);
}

std::vector<int32_t> CompressedLevels(int32_t jobs, const std::vector<CompetingPair>& edges,
                                      int32_t levels, uint64_t seed) {
  std::vector<int32_t> level_of(jobs, 0);
  if (jobs == 0) return level_of;
  std::vector<std::vector<int32_t>> after(jobs);
  std::vector<int32_t> waits_for(jobs, 0);
  for (const CompetingPair& edge : edges) {
    after[edge.first].push_back(edge.second);
    ++waits_for[edge.second];
  }
  std::mt19937_64 random(seed);
  double least = std::numeric_limits<double>::infinity();
  const int orders = jobs > kMostForSeveralOrders ? 1 : kOrders;
  for (int round = 0; round < orders && least > 0; ++round) {
    std::vector<int32_t> order, left = waits_for, free;
    for (int32_t j = 0; j < jobs; ++j) {
      if (left[j] == 0) free.push_back(j);
    }
    while (!free.empty()) {
      // The first order is that of the priorities.
      const auto pick = round == 0
                            ? std::min_element(free.begin(), free.end())
                            : free.begin() + static_cast<std::ptrdiff_t>(random() % free.size());
      const int32_t j = *pick;
      free.erase(pick);
      order.push_back(j);
      for (int32_t next : after[j]) {
        if (--left[next] == 0) free.push_back(next);
      }
    }
    std::vector<int32_t> cut;
    const double inside = Cut(order, edges, levels, &cut);
    if (inside < least) {
      least = inside;
      level_of = std::move(cut);
    }
  }
  return level_of;
}

}  // namespace plancast
