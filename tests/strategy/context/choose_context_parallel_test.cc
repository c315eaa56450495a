#include "strategy/context/choose_context_parallel.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/choose_plan.h"
#include "strategy/context_parallel.h"
#include "strategy/software_profile.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Llama-3-8B with 32k tokens on 32 GPUs.
absl::StatusOr<ChosenPlan> Choose(const std::string& text, int64_t seq = 32'768,
                                  const SoftwareProfile& profile = {}) {
  PlanContext context;
  context.devices = 32;
  context.layers = 32;
  context.heads = 32, context.kv_heads = 8;
  context.hidden = 4096, context.ffn = 14336, context.vocab = 128256;
  context.seq = seq;
  context.global_batch = 32;
  absl::StatusOr<ShortForm> form = ParseShortForm(text);
  if (!form.ok()) return form.status();
  return ChoosePlan(*form, context, profile);
}

TEST(ContextParallelTest, TextsAreReadBack) {
  for (const char* text : {"ring", "ring_zigzag", "allgather", "ulysses", "hybrid:4"}) {
    ASSERT_OK_AND_ASSIGN(const ContextParallel said, ContextParallel::Parse(text));
    EXPECT_EQ(said.DebugString(), text);
  }
  EXPECT_THAT(ContextParallel::Parse("ulises").status().message(),
              HasSubstr("Did you mean `ulysses`?"));
  EXPECT_THAT(ContextParallel::Parse("hybrid").status().message(), HasSubstr("hybrid:2"));
  EXPECT_FALSE(ContextParallel::Parse("ring:2").ok());
}

TEST(ContextParallelTest, CutsAreThoseOfTheTree) {
  EXPECT_THAT((ContextParallel{CpType::kRing, 0}.Cuts()), ElementsAre("seq", "slots"));
  EXPECT_THAT((ContextParallel{CpType::kUlysses, 0}.Cuts()),
              ElementsAre("kv_seq:heads", "seq", "slots"));
  EXPECT_THAT((ContextParallel{CpType::kHybrid, 2}.Cuts()),
              ElementsAre("zigzag(seq)|zigzag(slots)", "kv_seq:heads|zigzag(seq)|zigzag(slots)/2"));
}

TEST(ChooseContextParallelTest, OverlapCountsWhereSoftwareWaits) {
  const auto notes = [](const std::string& text, bool waits) {
    SoftwareProfile profile;
    profile.name = "mine";
    profile.kernels.context_steps.waits = waits;
    const auto plan = Choose(text, 32'768, profile);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const bool takes = plan.ok() && plan->options.overlap.count(Overlap::kCp) > 0;
    return takes ? "it counts" : plan.ok() && !plan->notes.empty() ? plan->notes[0] : "nothing";
  };
  EXPECT_EQ(notes("cp=4,overlap=cp", true), "it counts");
  EXPECT_EQ(notes("cp=4,cp_type=hybrid:2,overlap=cp", true), "it counts");
  EXPECT_THAT(notes("cp=4,overlap=cp", false), HasSubstr("in mine anyway"));
  EXPECT_THAT(notes("cp=4,cp_type=allgather,overlap=cp", true), HasSubstr("only rings"));
  EXPECT_THAT(notes("overlap=cp", true), HasSubstr("with cp=1"));
}

TEST(ChooseContextParallelTest, TheProfileSaysTheType) {
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("cp=4"));
  EXPECT_EQ(plan.options.cp, 4);
  EXPECT_EQ(plan.options.dp, 8);
  EXPECT_EQ(plan.chosen.at("cp_type"), "ring_zigzag");
  SoftwareProfile gathers;
  gathers.context_parallel = CpType::kAllGather;
  ASSERT_OK_AND_ASSIGN(const ChosenPlan other, Choose("cp=4", 32'768, gathers));
  EXPECT_EQ(other.chosen.at("cp_type"), "allgather");
}

TEST(ChooseContextParallelTest, HybridsOfOneLevelAreTheOthers) {
  ASSERT_OK_AND_ASSIGN(const ChosenPlan heads, Choose("cp=4,cp_type=hybrid:4"));
  EXPECT_EQ(heads.chosen.at("cp_type"), "ulysses");
  ASSERT_OK_AND_ASSIGN(const ChosenPlan ring, Choose("cp=4,cp_type=hybrid:1"));
  EXPECT_EQ(ring.chosen.at("cp_type"), "ring_zigzag");
}

TEST(ChooseContextParallelTest, ErrorsSayWhatWouldWork) {
  const auto error = [](const std::string& text, int64_t seq = 32'768) {
    return std::string(Choose(text, seq).status().message());
  };
  EXPECT_THAT(error("tp=4,cp=8,cp_type=ulysses"), testing::IsEmpty());
  EXPECT_THAT(error("tp=8,cp=4,cp_type=ulysses"), testing::IsEmpty());
  EXPECT_THAT(error("cp=4,cp_type=hybrid:3"), HasSubstr("Use a divisor of 4."));
  EXPECT_THAT(error("cp=4", 1004), HasSubstr("in 8 pieces"));
  EXPECT_THAT(error("cp=4,cp_type=ring", 1004), testing::IsEmpty());
  EXPECT_THAT(error("cp=8,cp_type=ring", 1004), HasSubstr("Use a multiple of 8."));
  EXPECT_THAT(error("cp=4", 0), HasSubstr("the model has none"));
  EXPECT_THAT(error("tp=2,cp=3"), HasSubstr("cp can be 1, 2, 4, 8, 16."));
}

}  // namespace
}  // namespace plancast
