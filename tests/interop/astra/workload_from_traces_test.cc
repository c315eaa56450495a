#include "interop/astra/workload_from_traces.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/astra/simulator/simulate_astra.h"
#include "tests/interop/astra/simulator/astra_builder.h"
#include "tests/interop/chakra/et_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using Kind = AstraAlgorithm::Kind;

ChakraTrace TraceOf(std::vector<chakra::Node> nodes) {
  EtFile file;
  file.nodes = std::move(nodes);
  auto trace = ChakraTraceFrom(file, "x");
  EXPECT_OK(trace);
  return *std::move(trace);
}

TEST(WorkloadFromTracesTest, RanksWithOneTraceShareAProgram) {
  const ChakraTrace trace =
      TraceOf({EtKernel(1, 10), EtCollective(5, chakra::ALL_TO_ALL, 4096, {1}, "7")});
  const ChakraTrace other = TraceOf({EtMessage(2, true, 0, 3, 99)});
  const auto workload = AstraWorkloadFrom({&trace, &trace, &other}, {{7, {1, 0}}});
  ASSERT_OK(workload);
  EXPECT_EQ(workload->programs.size(), 2);
  EXPECT_THAT(workload->program_of, ::testing::ElementsAre(0, 0, 1));
  const AstraNode& node = workload->programs[0].nodes[1];
  EXPECT_EQ(node.collective, AstraCollective::kAllToAll);
  EXPECT_EQ(node.group, 0);
  EXPECT_EQ(workload->programs[1].nodes[0].tag, 3);
}

TEST(WorkloadFromTracesTest, WhatAstraSimDoesNotHave) {
  const ChakraTrace reduce = TraceOf({EtCollective(1, chakra::REDUCE, 8)});
  EXPECT_THAT(AstraWorkloadFrom({&reduce}, {}).status().message(), HasSubstr("is a REDUCE"));
  const ChakraTrace memory = TraceOf({EtNode(1, chakra::MEM_LOAD_NODE)});
  EXPECT_THAT(AstraWorkloadFrom({&memory}, {}).status().message(), HasSubstr("remote memory"));
}

ChakraTrace Sample(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  const auto file = ReadEtFile(bytes.str(), path);
  EXPECT_OK(file);
  auto trace = ChakraTraceFrom(*file, path);
  EXPECT_OK(trace);
  return *std::move(trace);
}

// The shipped traces run, and take what ASTRA-sim says.
TEST(WorkloadFromTracesTest, ShippedSamplesRun) {
  const char* data = std::getenv("PLANCAST_SHARED_DATA");
  if (data == nullptr) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  AstraSystem system = SystemOf({Kind::kRing});
  system.splits = 4;
  system.endpoint_delay_ns = 10;
  system.local_mem_gb_per_s = 50;
  for (const int64_t n : {4, 8, 16}) {
    for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
      std::vector<ChakraTrace> traces;
      std::vector<const ChakraTrace*> pointers;
      for (int64_t r = 0; r < n; ++r) {
        traces.push_back(Sample(absl::StrCat(data, "/chakra/microbenchmarks/", kind, "/", n,
                                             "npus_1MB/", kind, ".", r, ".et")));
      }
      for (const ChakraTrace& trace : traces) pointers.push_back(&trace);
      ASSERT_OK(VerifyTraces(pointers, {}));
      const auto workload = AstraWorkloadFrom(pointers, {});
      ASSERT_OK(workload);
      const auto result = SimulateAstra(*workload, OneDim(AstraWiring::kRing, n, true), system);
      ASSERT_OK(result);
      if (n == 8 && std::string(kind) == "all_reduce") {
        EXPECT_EQ(result->last_finish_ns(), 117780);
      }
    }
  }
  // The custom ring of 8.
  system.splits = 1;
  system.all_reduce = {{Kind::kCustom}};
  for (int64_t r = 0; r < 8; ++r) {
    const auto program = AstraCustomFrom(Sample(
        absl::StrCat(data, "/chakra/custom_ring_allreduce_8npus_1MB/custom_allreduce.", r, ".et")));
    ASSERT_OK(program);
    system.custom.push_back(*program);
  }
  const auto result =
      SimulateAstra(OnAllRanks(AstraRow({AstraComm(AstraCollective::kAllReduce, 1 << 20)}), 8),
                    OneDim(AstraWiring::kRing, 8, true), system);
  ASSERT_OK(result);
  EXPECT_EQ(result->last_finish_ns(), 90174);
}

}  // namespace
}  // namespace plancast
