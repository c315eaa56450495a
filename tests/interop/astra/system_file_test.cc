#include "interop/astra/system_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
using Kind = AstraAlgorithm::Kind;

TEST(SystemFileTest, TheKeysThatMatter) {
  const auto file = ReadAstraSystem(R"({
    "scheduling-policy": "FIFO", "endpoint-delay": 7, "active-chunks-per-dimension": 2,
    "preferred-dataset-splits": 4, "collective-optimization": "localBWAware",
    "all-reduce-implementation": ["ring", "halvingDoubling"],
    "all-gather-implementation": ["direct4", "oneRing"],
    "reduce-scatter-implementation": ["doubleBinaryTree"],
    "all-to-all-implementation": ["direct"],
    "local-mem-bw": 50, "boost-mode": 0, "roofline-enabled": 1, "peak-perf": 989})",
                                    "sys.json");
  ASSERT_OK(file);
  const AstraSystem& system = file->system;
  EXPECT_EQ(system.order, AstraSystem::Order::kFifo);
  EXPECT_EQ(system.endpoint_delay_ns, 7);
  EXPECT_EQ(system.active_chunks, 2);
  EXPECT_EQ(system.splits, 4);
  EXPECT_TRUE(system.local_bw_aware);
  EXPECT_EQ(system.all_reduce[1].kind, Kind::kHalvingDoubling);
  EXPECT_EQ(system.all_gather[0].window, 4);
  EXPECT_TRUE(system.all_gather[1].one);
  EXPECT_EQ(system.reduce_scatter[0].kind, Kind::kDoubleBinaryTree);
  EXPECT_EQ(system.local_mem_gb_per_s, 50);
  EXPECT_TRUE(system.roofline);
  EXPECT_EQ(system.peak_tflops, 989);
}

TEST(SystemFileTest, ACustomCollective) {
  const auto file = ReadAstraSystem(
      R"({"local-mem-bw": 50, "all-reduce-implementation-custom": ["ets/ring"]})", "sys.json");
  ASSERT_OK(file);
  EXPECT_EQ(file->custom_prefix, "ets/ring");
  EXPECT_EQ(file->system.all_reduce[0].kind, Kind::kCustom);
}

TEST(SystemFileTest, ErrorsNameTheKey) {
  const auto error = [](const std::string& text) {
    return std::string(ReadAstraSystem(text, "sys.json").status().message());
  };
  EXPECT_THAT(error("{}"), HasSubstr("sys.json: key `local-mem-bw`: is missing"));
  EXPECT_THAT(error(R"({"local-mem-bw": 1, "endpoint-dealy": 1})"),
              HasSubstr("`endpoint-dealy`: is not known. Did you mean `endpoint-delay`?"));
  EXPECT_THAT(error(R"({"local-mem-bw": 1, "scheduling-policy": "LILO"})"),
              HasSubstr("key `scheduling-policy`: unknown word `LILO`"));
  EXPECT_THAT(error(R"({"local-mem-bw": 1, "all-reduce-implementation": ["rings"]})"),
              HasSubstr("Did you mean `ring`?"));
  EXPECT_THAT(error(R"({"local-mem-bw": 1, "preferred-dataset-splits": 0})"),
              HasSubstr("key `preferred-dataset-splits`: must be a number from 1"));
  EXPECT_THAT(error(R"({"local-mem-bw": 1, "model-shared-bus": 1})"), HasSubstr("take 0"));
  EXPECT_THAT(error(R"({"local-mem-bw": 1)"), HasSubstr("sys.json"));
  EXPECT_FALSE(ReadAstraSystem(std::string(5000, '['), "sys.json").ok());
}

}  // namespace
}  // namespace plancast
