#ifndef PLANCAST_TESTS_COMPILER_COMPILED_GRAPH_H_
#define PLANCAST_TESTS_COMPILER_COMPILED_GRAPH_H_

#include <utility>

#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {

// The graph of a plan, verified; an empty one, and a failed test, if it has none.
inline ExecutionGraph Compiled(PlanUnderTest plan) {
  auto graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return ExecutionGraph();
  EXPECT_OK(graph->Verify());
  return *std::move(graph);
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_COMPILED_GRAPH_H_
