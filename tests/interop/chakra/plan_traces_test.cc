#include "interop/chakra/plan_traces.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/astra/simulator/simulate_astra.h"
#include "interop/astra/workload_from_traces.h"
#include "tests/executor/graph_builder.h"
#include "tests/interop/astra/simulator/astra_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

// Two stages of two data-parallel ranks: stage 0 computes, sends on, reduces.
ExecutionGraph TwoStages() {
  GraphBuilder b({{"pp", 2}, {"dp", 2}});
  b.Block("F").Kernel(1.4e-6).Kernel(1.4e-6, {0});
  b.Block("send").Comm(CollectiveKind::kSendRecv, 4096, {0}, {}, Purpose::kPp,
                       StreamKind::kSendNext);
  b.Meets();
  b.Block("recv").Comm(CollectiveKind::kSendRecv, 4096, {0}, {}, Purpose::kPp,
                       StreamKind::kRecvPrev);
  b.Meets();
  b.Block("grad").Comm(CollectiveKind::kAllGather, 8192, {1}, {}, Purpose::kDp,
                       StreamKind::kGradComm);
  const int meeting = b.Rendezvous();
  b.Program("stage 0", {{0, 0}}).Run("F", {}, 2);
  b.Run("send", {{0, -1, -1}}, 1, 0, meeting).Run("grad", {{0, -1, -1}});
  b.Program("stage 1", {{0, 1}}).Run("recv", {}, 1, 0, meeting).Run("F", {{0, -1, -1}});
  return b.Build();
}

TEST(PlanTracesTest, KeepTheRulesAndRun) {
  const ExecutionGraph graph = TwoStages();
  ASSERT_OK(graph.Verify());
  std::vector<double> seconds;
  for (const KernelSpec& kernel : graph.kernels) seconds.push_back(kernel.flops);
  auto plan = PlanTraces::Create(graph, seconds);
  ASSERT_OK(plan);
  ASSERT_EQ(plan->ranks(), 4);
  std::vector<ChakraTrace> traces;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const EtFile file = plan->TraceOf(rank);
    // Its own reader takes it back.
    const auto again = ReadEtFile(WriteEtFile(file), "x");
    ASSERT_OK(again);
    auto trace = ChakraTraceFrom(*again, "x");
    ASSERT_OK(trace);
    traces.push_back(*std::move(trace));
  }
  std::vector<const ChakraTrace*> pointers;
  for (const ChakraTrace& trace : traces) pointers.push_back(&trace);
  EXPECT_OK(VerifyTraces(pointers, plan->groups()));
  EXPECT_EQ(WriteCommGroups(plan->groups()), "{\n  \"1\": [0, 1]\n}\n");
  // Four kernels of 1.4 us in whole microseconds: 1, 2, 1, 2.
  int64_t us = 0;
  for (const ChakraTrace::Node& node : traces[0].nodes) us += node.duration_us;
  EXPECT_EQ(us, 6);
  const ChakraTrace::Node& gather = traces[1].nodes.back();
  EXPECT_EQ(gather.bytes, 4096);  // what a rank gives
  EXPECT_EQ(gather.group, 1);
  EXPECT_EQ(traces[0].nodes[4].dst, 2);
  EXPECT_EQ(traces[3].nodes[0].src, 1);

  const auto workload = AstraWorkloadFrom(pointers, plan->groups());
  ASSERT_OK(workload);
  const AstraNetwork network{
      {{AstraWiring::kSwitch, 2, 50, 500}, {AstraWiring::kRing, 2, 50, 500}}, false, 1};
  const auto result = SimulateAstra(
      *workload, network, SystemOf({AstraAlgorithm::Kind::kRing, AstraAlgorithm::Kind::kRing}));
  ASSERT_OK(result);
  // Message of 4096 B over the ring after 6 us, then kernels of 3 us.
  EXPECT_EQ(result->finish_ns[2], 6000 + 576 + 3000);
}

TEST(PlanTracesTest, MicrobenchmarksAreThoseOfTheExamples) {
  const char* data = std::getenv("PLANCAST_SHARED_DATA");
  if (data == nullptr) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  for (const int64_t ranks : {4, 8, 16}) {
    for (const auto& [type, name] : {std::make_pair(chakra::ALL_REDUCE, "all_reduce"),
                                     std::make_pair(chakra::ALL_GATHER, "all_gather"),
                                     std::make_pair(chakra::REDUCE_SCATTER, "reduce_scatter"),
                                     std::make_pair(chakra::ALL_TO_ALL, "all_to_all")}) {
      const auto file = MicrobenchmarkTrace(type, ranks, 1 << 20);
      ASSERT_OK(file);
      const std::string path = absl::StrCat(data, "/chakra/microbenchmarks/", name, "/", ranks,
                                            "npus_1MB/", name, ".0.et");
      std::ifstream in(path, std::ios::binary);
      std::stringstream bytes;
      bytes << in.rdbuf();
      EXPECT_EQ(WriteEtFile(*file), bytes.str()) << path;
    }
  }
}

}  // namespace
}  // namespace plancast
