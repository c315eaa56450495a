#include "interop/chakra/dag_from_traces.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/interop/chakra/et_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ChakraTrace TraceOf(std::vector<chakra::Node> nodes) {
  EtFile file;
  file.nodes = std::move(nodes);
  auto trace = ChakraTraceFrom(file, "x");
  EXPECT_OK(trace);
  return *std::move(trace);
}

DeviceType Device() {
  DeviceType device;
  device.bf16_flops = 1e14;
  device.memory_bytes_per_s = 1e12;
  return device;
}

TEST(DagFromTracesTest, DurationsRooflinesAndUnits) {
  chakra::Node by_ops = EtNode(2, chakra::COMP_NODE);
  SetInt(by_ops, "num_ops", 1'000'000'000'000);
  SetInt(by_ops, "tensor_size", 1'000'000);
  const ChakraTrace trace =
      TraceOf({EtKernel(1, 7), by_ops, EtCollective(3, chakra::ALL_GATHER, 100, {1, 2}, "4"),
               EtCollective(5, chakra::BARRIER, 0)});
  const auto job = DagJobFrom({&trace, &trace, &trace}, {{4, {2, 0, 1}}}, Device());
  ASSERT_OK(job);
  ASSERT_EQ(job->dags.size(), 1);
  EXPECT_THAT(job->dag_of, ElementsAre(0, 0, 0));
  EXPECT_THAT(job->groups[1], ElementsAre(0, 1, 2));
  const auto& tasks = job->dags[0].tasks;
  EXPECT_EQ(tasks[0].duration_ps, 7'000'000);
  EXPECT_EQ(tasks[1].duration_ps, 10'000'000'000);
  EXPECT_EQ(tasks[2].bytes, 300);  // all that comes together
  EXPECT_EQ(tasks[2].group, 1);
  EXPECT_EQ(tasks[3].collective, CollectiveKind::kAllReduce);
}

TEST(DagFromTracesTest, WhatAMachineCannotSay) {
  chakra::Node some = EtCollective(1, chakra::ALL_REDUCE, 8);
  chakra::AttributeProto* dims = some.add_attr();
  dims->set_name("involved_dim");
  dims->mutable_bool_list()->add_values(true);
  dims->mutable_bool_list()->add_values(false);
  const ChakraTrace trace = TraceOf({some});
  EXPECT_THAT(DagJobFrom({&trace}, {}, Device()).status().message(), HasSubstr("`pg_name`"));
  const ChakraTrace gather = TraceOf({EtCollective(1, chakra::GATHER, 8)});
  const auto gathered = DagJobFrom({&gather}, {}, Device());
  ASSERT_OK(gathered);
  EXPECT_EQ(gathered->dags[0].tasks[0].collective, CollectiveKind::kGather);
}

}  // namespace
}  // namespace plancast
