#include "tests/executor/expect_same.h"

#include <cstdint>

#include "executor/attribution/breakdown.h"
#include "executor/attribution/critical_path.h"
#include "gtest/gtest.h"

namespace plancast {

void ExpectSame(const Breakdown& a, const Breakdown& b) {
  for (int64_t Breakdown::*part :
       {&Breakdown::compute, &Breakdown::recompute, &Breakdown::exposed_tp, &Breakdown::exposed_dp,
        &Breakdown::exposed_pp, &Breakdown::exposed_cp, &Breakdown::exposed_ep,
        &Breakdown::exposed_offload, &Breakdown::bubble, &Breakdown::straggler, &Breakdown::launch,
        &Breakdown::optimizer, &Breakdown::other}) {
    EXPECT_EQ(a.*part, b.*part);
    EXPECT_GE(a.*part, 0);
  }
}

void ExpectSameTraces(const Simulation& a, const Simulation& b) {
  EXPECT_EQ(a.trace().makespan_ps, b.trace().makespan_ps);
  ASSERT_EQ(a.sim().entities.size(), b.sim().entities.size());
  for (int e = 0; e < static_cast<int>(a.sim().entities.size()); ++e) {
    EXPECT_EQ(a.unfolded(e).start, b.unfolded(e).start) << "entity " << e;
    EXPECT_EQ(a.unfolded(e).end, b.unfolded(e).end) << "entity " << e;
    EXPECT_EQ(a.unfolded(e).cause, b.unfolded(e).cause) << "entity " << e;
  }
}

void ExpectSameAttribution(const Simulation& a, const Simulation& b) {
  for (int32_t e = 0; e < static_cast<int32_t>(a.sim().entities.size()); ++e) {
    const Breakdown parts = BreakdownOf(a.input(), a.trace(), e);
    ExpectSame(parts, BreakdownOf(b.input(), b.trace(), e));
    EXPECT_EQ(parts.total(), a.trace().makespan_ps);
  }
  SimResult x, y;
  AttributeCriticalPath(a.input(), a.trace(), x);
  AttributeCriticalPath(b.input(), b.trace(), y);
  ExpectSame(x.critical_path, y.critical_path);
  ASSERT_EQ(x.factors.size(), y.factors.size());
  for (const auto& [factor, share] : x.factors) {
    EXPECT_DOUBLE_EQ(share.seconds, y.factors.at(factor).seconds) << factor;
  }
}

}  // namespace plancast
