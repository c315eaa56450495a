#include "strategy/framework_limits.h"

#include <cstdint>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/software_profile.h"

namespace plancast {
namespace {

std::string WhyNot(const std::string& profile, const std::string& plan,
                   std::optional<int64_t> micro_batches = std::nullopt) {
  const absl::StatusOr<SoftwareProfile> known = FindSoftwareProfile(profile);
  EXPECT_TRUE(known.ok()) << known.status();
  return known->limits.WhyNot(*ParseShortForm(plan), known->name, micro_batches);
}

TEST(FrameworkLimitsTest, SayWhatAFrameworkLacks) {
  EXPECT_EQ(WhyNot("torchtitan", "dp=8,zero=1"), "torchtitan has no zero=1");
  EXPECT_EQ(WhyNot("torchtitan", "tp=8"), "torchtitan has no tp without sp");
  EXPECT_EQ(WhyNot("torchtitan", "recompute=uniform:2"), "torchtitan has no recompute=uniform");
  EXPECT_EQ(WhyNot("fsdp", "pp=2"), "fsdp has no pp");
  EXPECT_EQ(WhyNot("fsdp", "tp=2,sp,zero=3"), "fsdp has no sp");
  EXPECT_EQ(WhyNot("fsdp", "tp=2"), "fsdp has no tp with zero=0");
  EXPECT_EQ(WhyNot("fsdp", "dp=2,recompute=selective"), "fsdp has no recompute=selective");
  EXPECT_EQ(WhyNot("ddp", "dp=2,zero=3"), "ddp has no zero=3");
  EXPECT_EQ(WhyNot("ddp", "tp=2"), "ddp has no tp");
  EXPECT_EQ(WhyNot("composer", "tp=2,zero=3"), "composer has no tp");
  EXPECT_EQ(WhyNot("deepspeed", "ep=2"), "deepspeed has no ep");
  EXPECT_EQ(WhyNot("megatron-core", "recompute=every:2"), "megatron-core has no recompute=every");
  EXPECT_EQ(WhyNot("megatron-sc21", "dp=2,zero=2"), "megatron-sc21 has no zero=2");
  EXPECT_EQ(WhyNot("automodel-moe", "dp=2,zero=1"), "automodel-moe has no zero=1");
  EXPECT_EQ(WhyNot("automodel-moe", "tp=2"), "automodel-moe has no tp");
  EXPECT_EQ(WhyNot("automodel", "ep=2"), "automodel has no ep");
  EXPECT_EQ(WhyNot("nanotron", "pp=2,vpp=2"), "nanotron has no vpp");
}

TEST(FrameworkLimitsTest, LetPassWhatItHas) {
  for (const char* plan : {"dp=8,zero=3,recompute=every:2", "dp=2,tp=4,sp,pp=2", "ep=2,zero=3"}) {
    EXPECT_EQ(WhyNot("torchtitan", plan), "") << plan;
    EXPECT_EQ(WhyNot("torchtitan-eager", plan), "") << plan;
  }
  EXPECT_EQ(WhyNot("automodel-moe", "dp=8,ep=8,pp=2,vpp=2,zero=3,recompute=full"), "");
  EXPECT_EQ(WhyNot("automodel", "dp=4,tp=2,sp,zero=3,recompute=full"), "");
  for (const char* zero : {"", "zero=1", "zero=2", "zero=3"}) {
    EXPECT_EQ(WhyNot("megatron-core", zero), "") << zero;
    EXPECT_EQ(WhyNot("megatron-bridge", zero), "") << zero;
    EXPECT_EQ(WhyNot("deepspeed", zero), "") << zero;
    EXPECT_EQ(WhyNot("compiled", zero), "") << zero;  // says nothing: anything goes
  }
  EXPECT_EQ(WhyNot("fsdp", "tp=2,zero=3,recompute=full:2"), "");
  EXPECT_EQ(WhyNot("ddp", "dp=8"), "");
}

// core/pipeline_parallel/schedules.py of Megatron, torch/distributed/pipelining/schedules.py.
TEST(FrameworkLimitsTest, SayWhatNumbersOfMicroBatchesSchedulesTake) {
  const std::string few =
      "megatron-core has no interleaved schedule where there are fewer micro-batches than stages";
  for (const int64_t many : {1, 3, 5, 6, 7, 9}) {
    EXPECT_EQ(WhyNot("megatron-core", "pp=4,vpp=2", many), many < 4 ? few : "") << many;
    EXPECT_EQ(WhyNot("megatron-core", "pp=4,vpp=2,overlap=ep", many), many < 4 ? few : "") << many;
    EXPECT_EQ(WhyNot("megatron-sc21", "pp=4,vpp=2", many),
              "megatron-sc21 has no interleaved schedule where micro-batches are no multiple of pp")
        << many;
    EXPECT_EQ(WhyNot("megatron-core", "pp=4", many), "") << many;
    EXPECT_EQ(WhyNot("compiled", "pp=4,vpp=2", many), "") << many;
    EXPECT_NE(WhyNot("internevo", "pp=4,vpp=2", many), "") << many;
    EXPECT_NE(WhyNot("nemo-2024", "pp=4,vpp=2", many), "") << many;
  }
  for (const int64_t many : {4, 8, 12}) {
    EXPECT_EQ(WhyNot("megatron-core", "pp=4,vpp=2", many), "") << many;
  }
  // Two rounds of nine, and three of 13, are unlike.
  for (const int64_t many : {9, 11, 13}) {
    EXPECT_EQ(WhyNot("torchtitan", "pp=4,vpp=2,zero=3", many),
              "torchtitan has no interleaved schedule where rounds of at least pp micro-batches "
              "are unlike")
        << many;
  }
  for (const int64_t many : {1, 3, 4, 5, 7, 8, 10, 12, 15}) {
    EXPECT_EQ(WhyNot("torchtitan", "pp=4,vpp=2,zero=3", many), "") << many;
  }
  EXPECT_EQ(WhyNot("torchtitan", "pp=4", 3),
            "torchtitan has no schedule=1f1b with fewer micro-batches than stages");
  EXPECT_EQ(WhyNot("torchtitan", "pp=4,schedule=gpipe", 3),
            "torchtitan has no schedule=gpipe with fewer micro-batches than stages");
  EXPECT_NE(WhyNot("torchtitan", "pp=4,vpp=2,schedule=dualpipev", 7), "");
  EXPECT_EQ(WhyNot("torchtitan", "pp=4,vpp=2,schedule=dualpipev", 8), "");
  EXPECT_EQ(WhyNot("torchtitan", "pp=4,vpp=2,schedule=zbv", 3), "");
  EXPECT_EQ(WhyNot("torchtitan", "pp=4", 4), "");
  EXPECT_EQ(WhyNot("torchtitan", "dp=4", 1), "");
  EXPECT_EQ(WhyNot("nanotron", "pp=4", 2),
            "nanotron has no schedule=1f1b with fewer than pp-1 micro-batches");
  EXPECT_EQ(WhyNot("nanotron", "pp=4", 3), "");
  EXPECT_EQ(WhyNot("nanotron", "pp=4,schedule=gpipe", 1), "");
}

TEST(FrameworkLimitsTest, OfAUsersProfileAreChecked) {
  const auto parse = [](const std::string& limits) {
    return ParseSoftwareProfile("name: \"own\" like: \"megatron-core\" limits { " + limits + " }",
                                "own");
  };
  EXPECT_TRUE(parse("zero: 3").ok());
  EXPECT_THAT(parse("zero: 4").status().message(), testing::HasSubstr("limits.zero is 4"));
  EXPECT_THAT(parse("recompute: \"most\"").status().message(),
              testing::HasSubstr("limits.recompute"));
  EXPECT_THAT(parse("pipeline_batches: \"few\"").status().message(),
              testing::HasSubstr("limits.pipeline_batches is `few`"));
}

}  // namespace
}  // namespace plancast
