#include "interop/astra/case_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr char kTable[] =
    "case,backend,topology,npus_per_dim,bandwidth_GiBps,latency_ns,workload,collective,bytes,"
    "algorithm,preferred_dataset_splits,active_chunks_per_dim,endpoint_delay,local_mem_bw_GBps,"
    "scheduling,collective_optimization,num_queues_per_dim,finish_min_ns,finish_max_ns,status,"
    "note\n"
    "E_2d,congestion_aware,SwitchxRing,8x4,400x50,936.25x1000,micro,all_reduce,67108864,"
    "ringxdirect,4,2,1,1e+09,FIFO,baseline,2,540037,540038,ok,\"a, b\"\n";

TEST(CaseTableTest, ARowOfTwoDimensions) {
  const auto cases = ReadAstraCases(kTable, "c.csv");
  ASSERT_OK(cases);
  const AstraCase& c = cases->at(0);
  EXPECT_EQ(c.name, "E_2d");
  EXPECT_TRUE(c.network.congestion_aware);
  EXPECT_EQ(c.network.npus(), 32);
  EXPECT_EQ(c.network.dims[0].latency_ns, 936.25);
  EXPECT_EQ(c.network.queues_per_dim, 2);
  EXPECT_EQ(c.system.all_reduce[1].kind, AstraAlgorithm::Kind::kDirect);
  EXPECT_EQ(c.system.order, AstraSystem::Order::kFifo);
  EXPECT_FALSE(c.system.local_bw_aware);
  EXPECT_EQ(c.finish_max_ns, 540038);
  EXPECT_EQ(c.note, "a, b");
}

TEST(CaseTableTest, ErrorsNameLineAndColumn) {
  const auto error = [](const char* from, const char* to) {
    return std::string(
        ReadAstraCases(absl::StrReplaceAll(kTable, {{from, to}}), "c.csv").status().message());
  };
  EXPECT_THAT(error("SwitchxRing", "Switch"),
              HasSubstr("c.csv:2: column `npus_per_dim`: `8x4` has 2 entries"));
  EXPECT_THAT(error("400x50", "400xfast"), HasSubstr("column `bandwidth_GiBps`: `fast`"));
  EXPECT_THAT(error("congestion_aware", "ns3"), HasSubstr("column `backend`: `ns3`"));
  EXPECT_THAT(error(",algorithm,", ",algo,"), HasSubstr("no such column"));
  EXPECT_THAT(error("ringxdirect", "ringxtree"), HasSubstr("unknown word `tree`"));
  EXPECT_THAT(error("540037", "soon"), HasSubstr("column `finish_min_ns`: `soon` is no time"));
  EXPECT_THAT(error("540038", "-2"), HasSubstr("column `finish_max_ns`: `-2` is no time"));
  EXPECT_THAT(ReadAstraCases("", "c.csv").status().message(), HasSubstr("c.csv is empty"));
}

}  // namespace
}  // namespace plancast
