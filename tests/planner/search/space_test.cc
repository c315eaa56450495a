#include "planner/search/space.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

PlanContext Context(int64_t devices, int64_t batch) {
  PlanContext context;
  context.devices = devices;
  context.layers = 32;
  context.heads = 64;
  context.kv_heads = 8;
  context.global_batch = batch;
  return context;
}

SearchSpace Parse(const std::string& text) {
  absl::StatusOr<SearchSpace> space = ParseSearchSpace(text);
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

std::string ErrorOf(const std::string& text) {
  absl::StatusOr<SearchSpace> space = ParseSearchSpace(text);
  return space.ok() ? "" : std::string(space.status().message());
}

Enumeration Plans(const std::string& space, const PlanContext& context, int64_t domain = 8,
                  const FrameworkLimits& limits = {}) {
  absl::StatusOr<Enumeration> plans =
      EnumeratePlans(Parse(space), context, {domain, limits, "torchtitan"});
  EXPECT_TRUE(plans.ok()) << plans.status();
  return *plans;
}

std::vector<std::string> Texts(const Enumeration& enumeration) {
  std::vector<std::string> out;
  for (const ShortForm& plan : enumeration.plans) out.push_back(PrintShortForm(plan));
  return out;
}

int64_t Excluded(const Enumeration& enumeration) {
  int64_t sum = 0;
  for (const auto& [reason, count] : enumeration.excluded) sum += count;
  return sum;
}

TEST(SearchSpaceTest, ReadsListsRangesAndStars) {
  const SearchSpace space = Parse("tp=1|2|4..8, pp=1..16, mb=*, recompute=none|full, sp=*");
  EXPECT_TRUE(space.tp->Contains(2));
  EXPECT_TRUE(space.tp->Contains(5));
  EXPECT_FALSE(space.tp->Contains(3));
  EXPECT_TRUE(space.mb->any);
  EXPECT_THAT(space.recompute, ElementsAre("none", "full"));
  EXPECT_THAT(space.sp, ElementsAre(false, true));
}

TEST(SearchSpaceTest, PrintsTheDefaultsAndReadsItsOwnText) {
  EXPECT_EQ(PrintSearchSpace({}, {8}, false, 2048),
            "tp=1..8,pp=*,vpp=*,mb=1|2|4|8,cp=1|2|4 (with tp=8 and mb=1),"
            "cp_type=ring_zigzag|allgather|ulysses,recompute=none|selective|full,zero=0|1|2|3,"
            "sp=1");
  EXPECT_THAT(PrintSearchSpace({}, {8}, false, /*seq=*/0), Not(HasSubstr("cp")));
  const std::string text =
      "dp=4,tp=1|2,pp=2..8,vpp=*,mb=*,recompute=full,zero=1,sp=0|1,attn=flash|unfused";
  EXPECT_EQ(PrintSearchSpace(Parse(text), {8}, false, 2048), text);
  EXPECT_THAT(PrintSearchSpace({}, {8}, true, 2048), HasSubstr(",ep=*,"));
  FrameworkLimits limits;
  limits.zero = {0, 3};
  limits.recompute = {"none", "full", "every"};
  limits.sp = false;
  EXPECT_THAT(
      PrintSearchSpace({}, {4, limits}, false, 2048),
      testing::AllOf(HasSubstr("tp=1..4,"), HasSubstr("recompute=none|full,zero=0|3,sp=0")));
}

TEST(SearchSpaceTest, LongSequencesAreCutOverContextRanks) {
  EXPECT_THAT(PrintSearchSpace({}, {8}, false, kLongSequence),
              HasSubstr("cp=*,cp_type=ring_zigzag|allgather|ulysses,"));
  FrameworkLimits without;
  without.cp = false;
  EXPECT_THAT(PrintSearchSpace({}, {8, without}, false, kLongSequence), Not(HasSubstr("cp")));
  EXPECT_THAT(ErrorOf("cp_type=rings"), HasSubstr("Did you mean `ring`?"));
}

TEST(SearchSpaceTest, NumbersAndSetsOfRecomputedLayersHaveStars) {
  PlanContext context = Context(4, 64);
  context.layers = 6;
  const auto recomputes = [&](const std::string& said, int64_t pp) {
    std::vector<std::string> texts;
    const std::string space = absl::StrCat("tp=1,mb=1,vpp=1,zero=0,pp=", pp, ",recompute=", said);
    const absl::StatusOr<Enumeration> plans = EnumeratePlans(
        Parse(space), context, {8, {}, "", {}, {"selective:mlp", "selective:core_attn+mlp"}});
    EXPECT_OK(plans);
    for (const std::string& text : Texts(*plans)) {
      texts.push_back(text.substr(text.find("recompute=") + 10));
    }
    return texts;
  };
  EXPECT_THAT(recomputes("none|full:*|full", 2), ElementsAre("none", "full:1", "full:2", "full"));
  EXPECT_THAT(recomputes("every:*|every:2", 2), ElementsAre("every:2", "every:3"));
  EXPECT_THAT(recomputes("uniform:*", 4), ElementsAre("uniform:2"));
  EXPECT_THAT(recomputes("selective:*", 1),
              ElementsAre("selective:mlp", "selective:core_attn+mlp"));
  EXPECT_THAT(ErrorOf("recompute=half:*"), HasSubstr("each also with `*`"));
}

TEST(SearchSpaceTest, LayersOfStagesAreDealtUnevenly) {
  PlanContext context = Context(4, 64);
  context.layers = 14;
  context.deal = [](int64_t stages) {
    return stages == 4 ? std::vector<int64_t>{4, 4, 4, 2} : std::vector<int64_t>{};
  };
  const auto layouts = [&](const std::string& said, int64_t pp) {
    std::vector<std::string> texts;
    const std::string space =
        absl::StrCat("tp=1,mb=1,vpp=1,zero=0,recompute=none,pp=", pp, ",layout=", said);
    for (const ShortForm& plan : Plans(space, context).plans) {
      EXPECT_TRUE(plan.layout.empty() || std::accumulate(plan.layout.begin(), plan.layout.end(),
                                                         int64_t{0}) == context.layers);
      texts.push_back(PrintLayout(plan.layout));
    }
    return texts;
  };
  // 3+4+4+3 is what a plan has that says nothing.
  EXPECT_THAT(layouts("*", 4), ElementsAre("", "4x3+2", "4+3x2+4", "4x2+3x2", "3+4+3+4", "2+4x3"));
  EXPECT_THAT(layouts("even|balanced", 4), ElementsAre("", "4x3+2"));
  EXPECT_THAT(layouts("5+3x3", 4), ElementsAre("5+3x3"));
  EXPECT_THAT(layouts("*", 1), ElementsAre(""));
  EXPECT_THAT(ErrorOf("layout=odd"), HasSubstr("layout"));
}

TEST(SearchSpaceTest, MeshAxesAreTriedInTheirOrders) {
  const auto orders = [](const std::string& space) {
    std::vector<std::string> texts;
    const std::string rest = ",tp=2,mb=1,vpp=1,zero=0,recompute=none,cp_type=ring,order=*";
    for (const ShortForm& plan : Plans(space + rest, Context(16, 64)).plans) {
      texts.push_back(absl::StrJoin(plan.order, "-"));
    }
    return texts;
  };
  EXPECT_THAT(orders("pp=2"), ElementsAre("", "tp-pp-dp"));
  EXPECT_THAT(orders("pp=1"), ElementsAre(""));
  EXPECT_THAT(orders("pp=2,cp=2"), SizeIs(6));
}

TEST(SearchSpaceTest, OtherKeysHaveStarsAndAWordForNothing) {
  const auto plans = [](const std::string& said) {
    return Plans("tp=1,pp=1,mb=1,zero=3,hsdp=8,recompute=none," + said, Context(8, 64)).plans;
  };
  EXPECT_THAT(plans("offload=*"), SizeIs(6));
  EXPECT_THAT(plans("offload=none|optimizer,reshard=*"), SizeIs(4));
  EXPECT_TRUE(plans("offload=none")[0].offload.empty());
  EXPECT_THAT(plans("sync=*,prefetch=1|2,unit=1|2,optimizer=*"), SizeIs(24));
  EXPECT_THAT(ErrorOf("accum=4"), HasSubstr("no key `accum`"));
}

TEST(SearchSpaceTest, ExpertsAreTriedWithPairsWhereTheFrameworkRunsThem) {
  PlanContext context = Context(8, 64);
  context.experts = 4;
  FrameworkLimits limits;
  limits.pairs = true;
  const std::string space = "tp=1,pp=1|2,vpp=1|2,mb=1,zero=1|3,recompute=none|full,ep=1|2";
  const absl::StatusOr<Enumeration> plans = EnumeratePlans(
      Parse(space), context, {8, limits, "megatron", {Overlap::kGrad, Overlap::kParam}});
  ASSERT_OK(plans);
  int pairs = 0;
  for (const ShortForm& plan : plans->plans) {
    if (plan.overlap.empty()) continue;
    ++pairs;
    EXPECT_THAT(plan.overlap, ElementsAre("grad", "param", "ep"));
    EXPECT_EQ(plan.ep, 2);
    EXPECT_EQ(plan.recompute, "none");
    EXPECT_TRUE(plan.pp == 1 || (plan.vpp == 2 && plan.zero == 1)) << PrintShortForm(plan);
  }
  EXPECT_EQ(pairs, 3);
  for (const char* said : {"ep=2,overlap=grad", "ep=1"}) {
    for (const ShortForm& plan : Plans(said, context, 8, limits).plans) {
      EXPECT_THAT(plan.overlap, Not(Contains("ep")));
    }
  }
}

TEST(EnumeratePlansTest, DataParallelismIsOverlappedWhereTheSoftwareCan) {
  FrameworkLimits limits;
  limits.data_beside = limits.tp_beside = true;
  const std::string space = "pp=1,mb=1,recompute=none,tp=2|4,zero=0|1";
  EXPECT_THAT(Texts(Plans(space, Context(4, 4), 8, limits)),
              ElementsAre("dp=2,tp=2,sp,pp=1,mb=1,recompute=none,overlap=grad",
                          "dp=2,tp=2,sp,pp=1,mb=1,recompute=none,overlap=grad+tp",
                          "dp=2,tp=2,sp,pp=1,zero=1,mb=1,recompute=none,overlap=grad+param",
                          "dp=2,tp=2,sp,pp=1,zero=1,mb=1,recompute=none,overlap=grad+param+tp",
                          "dp=1,tp=4,sp,pp=1,mb=1,recompute=none",
                          "dp=1,tp=4,sp,pp=1,mb=1,recompute=none,overlap=tp"));
  EXPECT_THAT(Texts(Plans(space + ",overlap=none", Context(4, 4), 8, limits)), SizeIs(3));
}

TEST(EnumeratePlansTest, OverlapOfTensorParallelismIsTriedWhereThereIsSome) {
  FrameworkLimits limits;
  limits.tp_beside = true;
  const std::string space = "pp=1,mb=1,recompute=none,zero=0,tp=1|2";
  EXPECT_THAT(
      Texts(Plans(space, Context(4, 4), 8, limits)),
      ElementsAre("dp=4,tp=1,pp=1,mb=1,recompute=none", "dp=2,tp=2,sp,pp=1,mb=1,recompute=none",
                  "dp=2,tp=2,sp,pp=1,mb=1,recompute=none,overlap=tp"));
  for (const char* more : {",sp=0", ",overlap=grad"}) {
    for (const ShortForm& plan : Plans(absl::StrCat(space, more), Context(4, 4), 8, limits).plans) {
      EXPECT_THAT(plan.overlap, Not(Contains("tp"))) << more;
    }
  }
  PlanContext experts = Context(4, 4);
  experts.experts = 8;
  for (const ShortForm& plan : Plans(space, experts, 8, limits).plans) {
    EXPECT_THAT(plan.overlap, Not(Contains("tp")));
  }
}

// Layers that divide into no stages come with embedding, head and a predicted token's module: 61
// are DeepSeek-V3's, 94 Qwen3-235B's, 126 Llama 3.1 405B's.
TEST(EnumeratePlansTest, ChunksMayLackThreeLayers) {
  const auto chunks = [](int64_t layers, int64_t pp) {
    PlanContext context = Context(pp, 64);
    context.layers = layers;
    std::vector<int64_t> sizes;
    const std::string space = absl::StrCat("tp=1,mb=1,recompute=none,zero=0,pp=", pp);
    for (const ShortForm& plan : Plans(space, context).plans) {
      sizes.push_back(plan.vpp.value_or(1));
    }
    return sizes;
  };
  EXPECT_THAT(chunks(61, 4), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(chunks(94, 8), ElementsAre(1, 2, 3, 4, 6));
  EXPECT_THAT(chunks(126, 16), ElementsAre(1, 2, 4));
  EXPECT_THAT(chunks(32, 8), ElementsAre(1, 2, 4));
  EXPECT_THAT(chunks(32, 1), ElementsAre(1));
}

TEST(SearchSpaceTest, ErrorsNameTheKeyAndTheRemedy) {
  EXPECT_THAT(ErrorOf("tpp=2"), HasSubstr("no key `tpp`. Did you mean `tp`?"));
  EXPECT_THAT(ErrorOf("tp=1,2,4"), HasSubstr("`tp=1,2,4`: values are joined by `|`. Write "
                                             "`tp=1|2|4`."));
  EXPECT_THAT(ErrorOf("mb=1, recompute=none,full,tp=2"), HasSubstr("Write `recompute=none|full`."));
  EXPECT_THAT(ErrorOf("tp=two"), HasSubstr("whole numbers"));
  EXPECT_THAT(ErrorOf("tp=0"), HasSubstr("whole numbers from 1"));
  EXPECT_THAT(ErrorOf("tp=-4"), HasSubstr("whole numbers from 1"));
  EXPECT_THAT(ErrorOf("tp=99999999999999999999"), HasSubstr("whole numbers from 1"));
  EXPECT_THAT(ErrorOf("pp=8..2"), HasSubstr("`pp=2..8`"));
  EXPECT_THAT(ErrorOf("tp"), HasSubstr("Give it values"));
  EXPECT_THAT(ErrorOf("tp=1,tp=2"), HasSubstr("given twice"));
  EXPECT_THAT(ErrorOf("recompute=half"), HasSubstr("none|selective|full"));
  EXPECT_THAT(ErrorOf("zero=4"), HasSubstr("zero=0|1|2|3"));
  EXPECT_THAT(Parse("recompute=full:2|every:3|selective:mlp+layernorm").recompute,
              ElementsAre("full:2", "every:3", "selective:mlp+layernorm"));
  EXPECT_THAT(ErrorOf("sp=2"), HasSubstr("sp=*"));
  EXPECT_THAT(ErrorOf("attn=fast"), HasSubstr("flash"));
}

TEST(EnumeratePlansTest, EveryPlanUsesAllDevicesAndDividesTheBatch) {
  const Enumeration enumeration = Plans("mb=*", Context(64, 96));
  EXPECT_THAT(enumeration.plans, Not(SizeIs(0)));
  for (const ShortForm& plan : enumeration.plans) {
    EXPECT_EQ(*plan.dp * *plan.tp * *plan.pp, 64);
    EXPECT_EQ(96 % (*plan.dp * *plan.mb), 0);
    EXPECT_LE(*plan.tp, 8);
    EXPECT_LE(*plan.pp * plan.vpp.value_or(1), 32);
  }
}

TEST(EnumeratePlansTest, ContextRanksTakeTheirDevicesFromDp) {
  PlanContext context = Context(16, 64);
  context.seq = 32'768;
  context.heads = 32, context.kv_heads = 8;
  std::map<std::string, int> types;
  for (const ShortForm& plan : Plans("pp=1,vpp=1,mb=1,recompute=none,zero=0", context).plans) {
    EXPECT_EQ(*plan.dp * *plan.tp * plan.cp.value_or(1), 16);
    ++types[plan.cp_type.value_or("")];
  }
  EXPECT_GT(types[""], 0);
  EXPECT_GT(types["ring_zigzag"], 3);
  EXPECT_EQ(types["ring_zigzag"], types["allgather"]);
  EXPECT_GT(types["ulysses"], 0);
  context.seq = 4096;
  for (const ShortForm& plan : Plans("pp=1,tp=*", context).plans) {
    EXPECT_FALSE(plan.cp.has_value());
  }
  EXPECT_THAT(Texts(Plans("tp=2,pp=1,vpp=1,cp=4,cp_type=ring|hybrid:2,mb=1,recompute=none,zero=0",
                          context)),
              ElementsAre("dp=2,tp=2,sp,pp=1,cp=4,cp_type=ring,mb=1,recompute=none",
                          "dp=2,tp=2,sp,pp=1,cp=4,cp_type=hybrid:2,mb=1,recompute=none"));
}

// One sample of a dense model is too much for some stages: cp cuts it further than tp may.
TEST(EnumeratePlansTest, SingleSamplesAreCutWhereTpIsLargest) {
  PlanContext context = Context(16, 64);
  context.seq = 4096;
  context.heads = 32, context.kv_heads = 8;
  std::set<int64_t> cps;
  for (const ShortForm& plan : Plans("", context, /*gpus_per_domain=*/4).plans) {
    cps.insert(plan.cp.value_or(1));
    if (!plan.cp) continue;
    EXPECT_EQ(plan.tp, 4) << PrintShortForm(plan);
    EXPECT_EQ(plan.mb, 1) << PrintShortForm(plan);
  }
  EXPECT_THAT(cps, ElementsAre(1, 2, 4));
  const auto cuts = [&](const std::string& space) {
    const std::vector<ShortForm> plans = Plans(space, context, 4).plans;
    return std::any_of(plans.begin(), plans.end(),
                       [](const ShortForm& plan) { return plan.cp.has_value(); });
  };
  EXPECT_TRUE(cuts("pp=2,zero=1"));
  for (const char* said : {"tp=4", "mb=1", "cp=1"}) EXPECT_FALSE(cuts(said)) << said;
  context.experts = 8;
  EXPECT_FALSE(cuts(""));
}

TEST(EnumeratePlansTest, ListsEachPlanOnce) {
  std::vector<std::string> texts = Texts(Plans("sp=*", Context(16, 64)));
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
}

TEST(EnumeratePlansTest, OneTextForOnePlanIsDeterministic) {
  const std::string space = "tp=8,pp=2,vpp=1,mb=1,recompute=full,zero=1";
  EXPECT_THAT(Texts(Plans(space, Context(32, 64))),
              ElementsAre("dp=2,tp=8,sp,pp=2,zero=1,mb=1,recompute=full"));
}

TEST(EnumeratePlansTest, SequenceParallelAndZeroNeedSomethingToDivide) {
  for (const std::string& text : Texts(Plans("tp=1,pp=16,sp=1,zero=1", Context(16, 64)))) {
    EXPECT_THAT(text, Not(HasSubstr("sp,")));
    EXPECT_THAT(text, Not(HasSubstr("zero")));
  }
}

TEST(EnumeratePlansTest, CountsWhatItLeavesOut) {
  const PlanContext context = Context(64, 96);
  const Enumeration all = Plans("tp=1..64,vpp=1,mb=1|5,recompute=full,zero=0", context);
  EXPECT_THAT(all.excluded,
              Contains(Pair("dp*mb does not divide the batch of 96", testing::Gt(0))));
  // Every combination is either a plan or excluded: 28 pairs (tp, pp) whose
  // product divides 64, two micro-batches each.
  EXPECT_EQ(static_cast<int64_t>(all.plans.size()) + Excluded(all), 28 * 2);
  // dp=64 does not divide the batch, nor does mb=5 what is left of it.
  const Enumeration few = Plans("tp=1|2,pp=1,vpp=1,mb=1|5,recompute=full,zero=0|1|2", context);
  EXPECT_THAT(few.plans, SizeIs(3));
  EXPECT_EQ(Excluded(few), 3 + 6);
}

TEST(EnumeratePlansTest, ByDefaultTensorParallelismStaysInADomain) {
  const Enumeration default_space = Plans("pp=1,vpp=1,mb=1", Context(64, 64));
  EXPECT_THAT(default_space.excluded,
              Contains(Pair(HasSubstr("what the GPUs' own links join (8 GPUs)"), testing::Gt(0))));
  // Said aloud, it is obeyed.
  EXPECT_THAT(Texts(Plans("tp=16,pp=1,vpp=1,mb=1,recompute=none,zero=0", Context(64, 64))),
              ElementsAre("dp=4,tp=16,sp,pp=1,mb=1,recompute=none"));
}

TEST(EnumeratePlansTest, AKeyThatDoesNotDivideTheMachineIsRefused) {
  for (const auto& [space, answer] : std::vector<std::pair<const char*, const char*>>{
           {"tp=16", "`tp=16` does not divide the 8 GPUs of the machine. Write `tp=1|2|4|8`, some"},
           {"pp=3|5..7", "`pp=3|5..7` does not divide"},
           {"tp=2,dp=3", "`dp=3` does not divide"}}) {
    ASSERT_OK_AND_ASSIGN(const SearchSpace parsed, ParseSearchSpace(space));
    EXPECT_THAT(EnumeratePlans(parsed, Context(8, 64), {8}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(answer)));
  }
}

TEST(EnumeratePlansTest, ByDefaultTensorParallelismEndsAtEightInLargerDomains) {
  PlanContext context = Context(72 * 16, 72 * 16);
  const auto most = [&](const std::string& space) {
    int64_t tp = 0;
    for (const ShortForm& plan : Plans(space, context, 72).plans) tp = std::max(tp, *plan.tp);
    return tp;
  };
  EXPECT_EQ(most("mb=1,vpp=1,zero=0"), 8);
  EXPECT_EQ(most("tp=1..72,mb=1,vpp=1,zero=0"), 64);
  EXPECT_THAT(Plans("mb=1,vpp=1,zero=0", context, 72).excluded,
              Contains(Pair("tp larger than 8 (the space tp=1..72 tries it)", testing::Gt(0))));
}

TEST(EnumeratePlansTest, ByDefaultEveryStageOfZeroIsTried) {
  EXPECT_THAT(Texts(Plans("tp=8,pp=1,vpp=1,mb=1,recompute=none", Context(16, 16))),
              ElementsAre("dp=2,tp=8,sp,pp=1,mb=1,recompute=none",
                          "dp=2,tp=8,sp,pp=1,zero=1,mb=1,recompute=none",
                          "dp=2,tp=8,sp,pp=1,zero=2,mb=1,recompute=none",
                          "dp=2,tp=8,sp,pp=1,zero=3,mb=1,recompute=none"));
}

TEST(EnumeratePlansTest, ByDefaultShardsAlsoStayInADomain) {
  const std::string one = "tp=2,pp=1,mb=1,recompute=none";
  EXPECT_THAT(Texts(Plans(one + ",zero=2|3", Context(64, 64))),
              ElementsAre("dp=32,tp=2,sp,pp=1,zero=2,mb=1,recompute=none",
                          "dp=32,tp=2,sp,pp=1,zero=3,mb=1,recompute=none",
                          "dp=32,tp=2,sp,pp=1,zero=3,hsdp=4,mb=1,recompute=none"));
  // In one domain there is nothing else.
  EXPECT_THAT(Texts(Plans(one + ",zero=3", Context(8, 64))), SizeIs(1));
  EXPECT_THAT(Texts(Plans(one + ",zero=0|1,hsdp=4|32", Context(64, 64))),
              ElementsAre("dp=32,tp=2,sp,pp=1,mb=1,recompute=none",
                          "dp=32,tp=2,sp,pp=1,zero=1,hsdp=4,mb=1,recompute=none",
                          "dp=32,tp=2,sp,pp=1,zero=1,mb=1,recompute=none"));
  EXPECT_THAT(Texts(Plans(one + ",zero=3,hsdp=*", Context(16, 64))),
              ElementsAre("dp=8,tp=2,sp,pp=1,zero=3,hsdp=2,mb=1,recompute=none",
                          "dp=8,tp=2,sp,pp=1,zero=3,hsdp=4,mb=1,recompute=none",
                          "dp=8,tp=2,sp,pp=1,zero=3,mb=1,recompute=none"));
  EXPECT_THAT(Plans(one + ",zero=3,hsdp=3", Context(16, 64)).excluded,
              Contains(Pair("hsdp=3 does not divide dp", 1)));
}

TEST(EnumeratePlansTest, WhatTheFrameworkCannotRunIsLeftOutAndCounted) {
  FrameworkLimits limits;
  limits.zero = {0, 3};
  limits.pp = false;
  const Enumeration plans = Plans("tp=8,vpp=1,mb=1,recompute=none", Context(16, 16), 8, limits);
  EXPECT_THAT(Texts(plans), ElementsAre("dp=2,tp=8,sp,pp=1,mb=1,recompute=none",
                                        "dp=2,tp=8,sp,pp=1,zero=3,mb=1,recompute=none"));
  EXPECT_THAT(plans.excluded, Contains(Pair("torchtitan has no pp", 1)));
  // What is said aloud is answered.
  EXPECT_THAT(
      Plans("tp=8,pp=1,vpp=1,mb=1,recompute=none,zero=1", Context(16, 16), 8, limits).excluded,
      ElementsAre(Pair("torchtitan has no zero=1", 1)));
  const std::string chunks = "tp=1,pp=2,vpp=2,recompute=none,zero=0,mb=1|2";
  limits = {};
  limits.pipeline_batches = PipelineBatches::kWholeGroups;  // with mb=2 there are three
  EXPECT_THAT(Plans(chunks, Context(4, 4), 12, limits).plans, SizeIs(1));
}

TEST(EnumeratePlansTest, ABatchOfTokensIsRefusedWithTheBatchThatWasMeant) {
  PlanContext context = Context(64, 4194304);
  context.seq = 4096;
  EXPECT_THAT(EnumeratePlans({}, context, {8}).status().message(),
              testing::AllOf(HasSubstr("a batch of 4194304 sequences of 4096 tokens"),
                             HasSubstr("if 4194304 tokens were meant, it is 1024.")));
  context.seq = 1;  // images
  EXPECT_OK(EnumeratePlans({}, context, {8}));
}

TEST(EnumeratePlansTest, TensorParallelismDividesHeads) {
  PlanContext context = Context(48, 48);
  const Enumeration plans = Plans("tp=3,pp=1,mb=1", context);
  EXPECT_THAT(plans.plans, SizeIs(0));
  EXPECT_THAT(plans.excluded, Contains(Pair("tp does not divide the 64 heads", testing::Gt(0))));
}

TEST(EnumeratePlansTest, NumbersThatDoNotDivideTheDevicesAreCounted) {
  const Enumeration plans = Plans("tp=1,pp=1|3,vpp=1,mb=1", Context(64, 64));
  EXPECT_THAT(plans.excluded, Contains(Pair("tp*pp does not divide the 64 GPUs", 1)));
}

TEST(EnumeratePlansTest, ExpertsAreCutByWhatDividesThemAndTheirRanks) {
  PlanContext context = Context(64, 64);
  context.experts = 24;
  auto sizes = [&](const std::string& space) {
    std::set<int64_t> eps;
    const Enumeration enumeration = Plans(space, context);
    for (const ShortForm& plan : enumeration.plans) {
      eps.insert(plan.ep.value_or(1));
    }
    return std::vector<int64_t>(eps.begin(), eps.end());
  };
  EXPECT_THAT(sizes("tp=2,pp=1"), ElementsAre(1, 2, 4, 8));  // of 32 and 24
  EXPECT_THAT(sizes("tp=2,pp=8"), ElementsAre(1, 2, 4));
  EXPECT_THAT(sizes("tp=2,pp=8,etp=1"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(sizes("tp=2,pp=1,ep=4|8"), ElementsAre(4, 8));
  context.experts = 0;
  EXPECT_THAT(sizes("tp=2,pp=1"), ElementsAre(1));
}

TEST(EnumeratePlansTest, OtherKeysAreTakenOver) {
  EXPECT_THAT(Plans("tp=8,pp=1,mb=1,recompute=none,zero=0,attn=flash|unfused", Context(8, 8)).plans,
              SizeIs(2));
}

TEST(EnumeratePlansTest, NeedsABatch) {
  PlanContext context = Context(64, 1);
  context.global_batch = std::nullopt;
  EXPECT_THAT(EnumeratePlans({}, context, {8}).status().message(), HasSubstr("--batch"));
  EXPECT_FALSE(EnumeratePlans({}, Context(64, -3), {8}).ok());
}

}  // namespace
}  // namespace plancast
