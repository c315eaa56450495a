#ifndef PLANCAST_TESTS_EXECUTOR_EXPECT_SAME_H_
#define PLANCAST_TESTS_EXECUTOR_EXPECT_SAME_H_

#include "executor/executor.h"
#include "tests/executor/simulation.h"

namespace plancast {

// Every part of two breakdowns.
void ExpectSame(const Breakdown& a, const Breakdown& b);

// When every task of every entity ran, and what it last waited for.
void ExpectSameTraces(const Simulation& a, const Simulation& b);

// Where time goes, from pieces as from tasks.
void ExpectSameAttribution(const Simulation& a, const Simulation& b);

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_EXPECT_SAME_H_
