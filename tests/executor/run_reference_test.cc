// The reference itself on cases worked out by hand, and where a closed form is known.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "executor/runtime.h"
#include "gtest/gtest.h"
#include "tests/executor/both_ways_cases.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/lower_reference.h"
#include "tests/executor/random_plan.h"

namespace plancast {
namespace {

TEST(RunReference, SlowsKernelsAndCommunicationsOnlyWhileTheyOverlap) {
  for (const BothWaysCase& by_hand : BothWaysCases()) {
    SCOPED_TRACE(by_hand.name);
    const Machine machine = *Machine::Create(by_hand.machine);
    const ReferenceLowering lowering =
        LowerReference(by_hand.graph, machine, UnitCost(), CommOf(by_hand, machine));
    ReferenceHost host;
    host.launch_ps = by_hand.host.launch_ps;
    host.slowdown_q20 = SlowdownQ20(1 + by_hand.interference);
    const ReferenceTimes times = RunReference(lowering, host, LinkSharing::kMaxMin,
                                              SlowdownQ20(1 + by_hand.comm_interference));
    EXPECT_EQ(times.end, by_hand.ends);
  }
}

// The end of a transfer that shares no link, from when kernels run on its ranks.
int64_t EndBeside(const std::vector<std::pair<int64_t, int64_t>>& kernels,
                  const RealisedCollective& realised, int64_t start, int64_t slowdown_q20) {
  int64_t now = start + realised.delay_ps;
  int128 left = int128{realised.work_bytes} * 1'000'000'000'000;
  while (true) {
    bool beside = false;
    int64_t next = INT64_MAX;
    for (const auto& [begin, end] : kernels) {
      beside = beside || (begin <= now && now < end);
      if (begin > now) next = std::min(next, begin);
      if (end > now) next = std::min(next, end);
    }
    int128 rate = realised.rate_cap_bytes_per_s;
    if (beside && !realised.uses_no_sms)
      rate = std::max<int128>(rate * (1 << 20) / slowdown_q20, 1);
    const int128 end = now + CeilDiv<int128>(left, rate);
    if (end <= next) return static_cast<int64_t>(end);
    left -= rate * (next - now);
    now = next;
  }
}

TEST(RunReference, TransfersThatShareNoLinkFollowFromWhenKernelsRun) {
  constexpr uint32_t kLastSeed = 200;
  std::cout << "seeds 1 to " << kLastSeed << "\n";
  int transfers = 0, slowed = 0;
  for (uint32_t seed = 1; seed <= kLastSeed && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomPlan plan = DrawPlan(seed);
    const Machine machine = *Machine::Create(plan.machine);
    const auto realise = [priced = MadeUpComm(machine, seed)](const GroupPattern& group,
                                                              const CommSpec& comm) {
      auto realised = priced(group, comm);
      realised->loads.clear();
      return realised;
    };
    const ReferenceLowering lowering = LowerReference(plan.graph, machine, UnitCost(), realise);
    ReferenceHost host;
    host.launch_ps = plan.host.launch_ps;
    host.slowdown_q20 = SlowdownQ20(1 + plan.interference);
    const int64_t slowdown_q20 = SlowdownQ20(1.37);
    const ReferenceTimes times = RunReference(lowering, host, LinkSharing::kMaxMin, slowdown_q20);
    if (times.deadlock) continue;
    std::vector<std::vector<std::pair<int64_t, int64_t>>> kernels(lowering.ranks.size());
    std::vector<std::pair<int64_t, int64_t>> of_meeting(lowering.meetings.size());
    for (size_t rank = 0; rank < lowering.ranks.size(); ++rank) {
      for (size_t t = 0; t < lowering.ranks[rank].tasks.size(); ++t) {
        const ReferenceTask& task = lowering.ranks[rank].tasks[t];
        const std::pair<int64_t, int64_t> ran = {times.start[rank][t], times.end[rank][t]};
        if (task.is_comm) {
          of_meeting[task.meeting] = ran;
        } else {
          kernels[rank].push_back(ran);
        }
      }
    }
    for (size_t m = 0; m < lowering.meetings.size(); ++m) {
      std::vector<std::pair<int64_t, int64_t>> beside;
      for (int64_t rank : lowering.meetings[m].ranks) {
        beside.insert(beside.end(), kernels[rank].begin(), kernels[rank].end());
      }
      const auto& [start, end] = of_meeting[m];
      const RealisedCollective& realised = lowering.meetings[m].realised;
      EXPECT_EQ(end, EndBeside(beside, realised, start, slowdown_q20));
      ++transfers;
      slowed += end > EndBeside({}, realised, start, slowdown_q20);
    }
  }
  EXPECT_GT(slowed, transfers / 20);
  EXPECT_LT(slowed, transfers);
}

}  // namespace
}  // namespace plancast
