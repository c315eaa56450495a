#include "executor/cluster/steady_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

constexpr int64_t kSecond = 1'000'000'000'000;
constexpr int64_t kByte = int64_t{1} << 20;  // a coefficient: one byte a byte
const std::vector<int64_t> kUnitLink = {1'000'000'000};

Loop MakeLoop(double compute_s, double transfer_s, int64_t weight = 1, int32_t priority = 0) {
  Loop loop;
  loop.uses = {{0, kByte}};
  loop.weight = weight;
  loop.priority = priority;
  loop.alone_level = AloneLevel(loop.uses, kUnitLink, weight, int64_t{1} << 45);
  loop.phases.push_back({static_cast<int64_t>(compute_s * kSecond), 0});
  loop.phases.push_back({0, int128{static_cast<int64_t>(transfer_s * kSecond)} * loop.AloneQ16()});
  return loop;
}

LoopSet SetOf(const std::vector<Loop>& loops, LinkSharing sharing,
              int64_t target = LoopSet::kNever) {
  std::vector<LoopSet::Member> members;
  for (const Loop& loop : loops) members.push_back({&loop, LoopState::Fresh(loop), target});
  LoopSet::Options options;
  options.sharing = sharing;
  options.waits = true;
  return LoopSet(std::move(members), kUnitLink, 0, options);
}

// Of each loop, in the long run; seconds.
std::vector<double> Iterations(const std::vector<Loop>& loops, LinkSharing sharing) {
  const SteadyRun run(SetOf(loops, sharing), {});
  std::vector<double> seconds;
  for (int64_t n : run.period()->iterations) {
    seconds.push_back(static_cast<double>(run.period()->time_ps) / kSecond /
                      static_cast<double>(n));
  }
  return seconds;
}

TEST(SteadyRun, OneLoopTakesWhatItsPhasesTake) {
  const std::vector<Loop> loops = {MakeLoop(1, 2)};
  EXPECT_EQ(loops[0].IterationPs(), 3 * kSecond);
  const SteadyRun run(SetOf(loops, LinkSharing::kMaxMin, 1000), {});
  EXPECT_EQ(run.end(), 3000 * kSecond);
}

// CRUX: two equal jobs that begin together and share one link.
TEST(SteadyRun, EqualLoopsThatBeginTogether) {
  const std::vector<Loop> fair = {MakeLoop(1, 1), MakeLoop(1, 1)};
  for (double s : Iterations(fair, LinkSharing::kMaxMin)) EXPECT_NEAR(s, 3.0, 1e-9);
  const std::vector<Loop> strict = {MakeLoop(1, 1, 1, 0), MakeLoop(1, 1, 1, 1)};
  for (double s : Iterations(strict, LinkSharing::kPriority)) EXPECT_NEAR(s, 2.0, 1e-9);
}

double Utilisation(const std::vector<double>& s) { return (32 * 2 / s[0] + 8 * 2 / s[1]) / 40; }

// P computes for 2 s on 32 GPUs and sends for 2, Q computes for 2 s on 8 and sends for 3.
TEST(SteadyRun, TheJobsOfCrux) {
  const auto p_first =
      Iterations({MakeLoop(2, 2, 1, 0), MakeLoop(2, 3, 1, 1)}, LinkSharing::kPriority);
  EXPECT_NEAR(p_first[0], 4.0, 1e-9);
  EXPECT_NEAR(p_first[1], 8.0, 1e-9);
  EXPECT_NEAR(Utilisation(p_first), 0.45, 1e-9);
  const auto q_first =
      Iterations({MakeLoop(2, 2, 1, 1), MakeLoop(2, 3, 1, 0)}, LinkSharing::kPriority);
  EXPECT_NEAR(q_first[0], 5.0, 1e-9);
  EXPECT_NEAR(q_first[1], 5.0, 1e-9);
  EXPECT_NEAR(Utilisation(q_first), 0.40, 1e-9);
  const auto fair = Iterations({MakeLoop(2, 2), MakeLoop(2, 3)}, LinkSharing::kMaxMin);
  EXPECT_NEAR(fair[0], 5.20, 1e-9);
  EXPECT_NEAR(fair[1], 6.50, 1e-9);
  EXPECT_NEAR(Utilisation(fair), 0.369, 5e-4);
}

TEST(SteadyRun, WeightsShareALink) {
  // Never computing, so that the link is shared at all times: 3 to 1.
  const auto s = Iterations({MakeLoop(0, 1, 3), MakeLoop(0, 1, 1)}, LinkSharing::kMaxMin);
  EXPECT_NEAR(s[0], 4.0 / 3, 1e-6);
  EXPECT_NEAR(s[1], 4.0, 1e-6);
}

// Leaving periods out changes nothing but roundings; the state at any time neither.
TEST(SteadyRun, LeavingOutIsAsRunningAll) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> eighths(1, 24), count(1, 4), target(20, 300);
  for (int round = 0; round < 200; ++round) {
    std::vector<Loop> loops;
    const int n = count(random);
    for (int i = 0; i < n; ++i) {
      loops.push_back(MakeLoop(eighths(random) / 8.0, eighths(random) / 8.0, 1, round % 2 ? i : 0));
    }
    const auto sharing = round % 2 ? LinkSharing::kPriority : LinkSharing::kMaxMin;
    const int64_t iterations = target(random);
    SteadyRun::Options options;
    options.most_events = 100'000;
    const SteadyRun quick(SetOf(loops, sharing, iterations), options);
    options.shortcuts = false;
    const SteadyRun whole(SetOf(loops, sharing, iterations), options);
    EXPECT_NEAR(static_cast<double>(quick.end()) / whole.end(), 1, 1e-7) << "round " << round;
    const int64_t half = whole.end() / 2;
    LoopSet a = quick.At(half), b = whole.At(half);
    EXPECT_LT(a.Distance(a.Positions(), b.Positions()), 1'000'000) << "round " << round;
    double waits = 0, expected = 0;
    for (const LoopWait& wait : a.Waits()) waits += wait.seconds;
    for (const LoopWait& wait : b.Waits()) expected += wait.seconds;
    EXPECT_NEAR(waits, expected, 1e-5 * (1 + expected)) << "round " << round;
  }
}

// Loops on many links, each event by event in a fluid that knows all of them.
std::vector<int64_t> IterationsOnAllLinks(const std::vector<Loop>& loops,
                                          const std::vector<int64_t>& capacities,
                                          LinkSharing sharing, int64_t until) {
  Fluid fluid(sharing);
  for (const int64_t capacity : capacities) fluid.AddResource(capacity);
  std::vector<int64_t> iterations(loops.size(), 0), computes(loops.size());
  std::vector<int32_t> transfers(loops.size(), -1);
  for (size_t m = 0; m < loops.size(); ++m) {
    ActivityKinds::Kind kind;
    kind.weight = loops[m].weight;
    kind.priority = loops[m].priority;
    kind.cap_level = kind.alone_level = loops[m].alone_level;
    fluid.AddKind(kind, loops[m].uses);
    computes[m] = loops[m].phases[0].compute_ps;
  }
  while (true) {
    int64_t next = fluid.NextCompletion();
    for (const int64_t end : computes) next = std::min(next, end);
    if (next > until) return iterations;
    const absl::Span<const int32_t> span = fluid.AdvanceTo(next);
    const std::vector<int32_t> ended(span.begin(), span.end());
    for (size_t m = 0; m < loops.size(); ++m) {
      if (computes[m] == next) {
        computes[m] = Fluid::kNever;
        Fluid::Progress progress;
        progress.left = loops[m].phases[1].work;
        progress.since = next;
        transfers[m] = fluid.Put(static_cast<int32_t>(m), progress);
      } else if (std::count(ended.begin(), ended.end(), transfers[m]) > 0) {
        transfers[m] = -1;
        ++iterations[m];
        computes[m] = next + loops[m].phases[0].compute_ps;
      }
    }
  }
}

// Links that are never full before others are left out, and nothing changes.
TEST(SteadyRun, LinksThatNeverBindMakeNoDifference) {
  std::mt19937 random(20261128);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 60; ++round) {
    const LinkSharing sharing = round % 2 == 0 ? LinkSharing::kMaxMin : LinkSharing::kPriority;
    std::vector<int64_t> capacities;
    for (int l = 0; l < 8; ++l) capacities.push_back(1'000'000'000 * (1 + below(3)));
    std::vector<Loop> loops;
    const int64_t count = 3 + below(5);
    for (int64_t m = 0; m < count; ++m) {
      Loop loop;
      for (int32_t l = 0; l < 8; ++l) {
        if (below(2) == 0) loop.uses.push_back({l, kByte * (1 + below(2))});
      }
      loop.weight = 1 + below(2);
      loop.priority = static_cast<int32_t>(below(3));
      loop.alone_level = AloneLevel(loop.uses, capacities, loop.weight, int64_t{1} << 32);
      loop.phases.push_back({kSecond / 100 * (1 + below(200)), 0});
      loop.phases.push_back({0, int128{kSecond / 100 * (1 + below(200))} * loop.AloneQ16()});
      loops.push_back(std::move(loop));
    }
    std::vector<LoopSet::Member> members;
    for (const Loop& loop : loops) {
      members.push_back({&loop, LoopState::Fresh(loop), LoopSet::kNever});
    }
    LoopSet::Options options;
    options.sharing = sharing;
    LoopSet set(std::move(members), capacities, 0, options);
    const int64_t until = 200 * kSecond;
    while (set.NextEvent() <= until) set.AdvanceTo(set.NextEvent());
    const std::vector<int64_t> wanted = IterationsOnAllLinks(loops, capacities, sharing, until);
    for (int64_t m = 0; m < count; ++m) {
      EXPECT_EQ(set.IterationsOf(static_cast<int>(m)), wanted[m]) << "round " << round;
    }
  }
}

// What a loop lost to others is what its iterations took longer.
TEST(SteadyRun, WaitsAddUpToWhatIsLost) {
  const std::vector<Loop> loops = {MakeLoop(2, 2), MakeLoop(2, 3)};
  const SteadyRun run(SetOf(loops, LinkSharing::kMaxMin, 500), {});
  const LoopSet end = run.at_end();
  double lost = 0;
  for (const LoopWait& wait : end.Waits()) lost += wait.waiter == 0 ? wait.seconds : 0;
  EXPECT_NEAR(lost, static_cast<double>(run.end()) / kSecond - 500 * 4, 1e-3);
}

}  // namespace
}  // namespace plancast
