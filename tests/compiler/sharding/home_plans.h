#ifndef PLANCAST_TESTS_COMPILER_SHARDING_HOME_PLANS_H_
#define PLANCAST_TESTS_COMPILER_SHARDING_HOME_PLANS_H_

// What tests of homes ask of a plan: its refusal, what its devices hold and what they move.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {

// Of weights, gradients and state so many have `home`, as `zero` counts.
inline PlanUnderTest& Homes(PlanUnderTest& plan, const char* node, const char* home, int zero) {
  for (const HomeKind kind : {HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState}) {
    plan.Home(node, kind, static_cast<int>(kind) + zero >= 3 ? home : "replicate");
  }
  return plan;
}

inline ExecutionGraph Compiled(PlanUnderTest& plan) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_OK(graph.status());
  if (graph.ok()) {
    EXPECT_OK(graph->Verify());
  }
  return graph.ok() ? *graph : ExecutionGraph();
}

inline std::string Refused(PlanUnderTest& plan) {
  return std::string(plan.Compile().status().message());
}

inline double Static(const ExecutionGraph& graph, MemoryKind kind, size_t program = 0) {
  return static_cast<double>(graph.programs[program].static_bytes[static_cast<int>(kind)]);
}

// use(block, task, how many layers it stands for)
template <typename Use>
void ForEachTask(const ExecutionGraph& graph, size_t program, Use use) {
  for (const Instance& instance : graph.programs[program].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) use(block, t, instance.layer_count);
  }
}

// Bytes that the first device moves, as they are, a buffer each.
inline std::map<CollectiveKind, double> MovedByKind(const ExecutionGraph& graph) {
  std::map<CollectiveKind, double> moved;
  ForEachTask(graph, 0, [&](const Block& block, int32_t t, int64_t times) {
    if (block.kind[t] != TaskKind::kComm) return;
    const CommSpec& comm = graph.comms[block.spec[t]];
    moved[comm.kind] += static_cast<double>(comm.bytes) * static_cast<double>(times);
  });
  return moved;
}

// Bytes of buffers that a device moves for gradients and weights, by collective and axes:
// `all_gather(dp*tp)`. Those of activations are left out.
inline std::map<std::string, double> MovedByAxes(const ExecutionGraph& graph, size_t program = 0) {
  std::map<std::string, double> moved;
  ForEachTask(graph, program, [&](const Block& block, int32_t t, int64_t times) {
    if (block.kind[t] != TaskKind::kComm) return;
    const bool partial = block.label[t] == "partial grad all_reduce";
    if (block.stream[t] == StreamKind::kModelComm && !partial) return;
    const CommSpec& comm = graph.comms[block.spec[t]];
    const std::string text = CommText(graph, comm);
    moved[text.substr(0, text.find(' '))] +=
        static_cast<double>(comm.bytes) * static_cast<double>(times);
  });
  return moved;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_SHARDING_HOME_PLANS_H_
