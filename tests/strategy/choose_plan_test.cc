#include "strategy/choose_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "strategy/software_profile.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// GPT-3 175B on 64 GPUs, unless a test says otherwise.
PlanContext Context() {
  PlanContext context;
  context.devices = 64;
  context.layers = 96;
  context.heads = context.kv_heads = 96;
  context.hidden = 12288;
  context.ffn = 4 * 12288;
  context.vocab = 51200;
  context.seq = 2048;
  context.global_batch = 64;
  return context;
}

absl::StatusOr<ChosenPlan> Choose(const std::string& text, const PlanContext& context = Context(),
                                  const SoftwareProfile& profile = {}) {
  absl::StatusOr<ShortForm> form = ParseShortForm(text);
  if (!form.ok()) return form.status();
  return ChoosePlan(*form, context, profile);
}

TEST(ChoosePlanTest, FillsInWhatIsNotSaid) {
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=8,pp=4"));
  EXPECT_EQ(plan.options.dp, 2);
  EXPECT_EQ(plan.options.micro_batch, 1);
  EXPECT_EQ(plan.options.micro_batches, 32);
  EXPECT_EQ(plan.options.schedule, Schedule::k1f1b);
  EXPECT_EQ(plan.options.recompute, Recompute::kNone);
  EXPECT_EQ(plan.options.zero, 0);
  EXPECT_EQ(plan.options.attention, Attention::kFlash);
  EXPECT_THAT(plan.options.layout, ElementsAre(24, 24, 24, 24));
  EXPECT_THAT(plan.options.order, ElementsAre("tp", "cp", "ep", "dp", "pp"));
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(ChoosePlanTest, WithoutTextsItChoosesTheSame) {
  for (const char* text : {"tp=8,pp=4", "tp=2,pp=32,vpp=3,sp,mb=2", "zero=3,order=dp-tp-pp,mb=1",
                           "tp=8,pp=5", "tp=4,pp=2,recompute=full:3,layout=40+56"}) {
    const absl::StatusOr<ChosenPlan> plan = Choose(text);
    ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm(text));
    const absl::StatusOr<PlanOptions> options = ChooseOptions(form, Context(), {});
    ASSERT_EQ(options.status(), plan.status());
    if (!options.ok()) continue;
    EXPECT_EQ(options->micro_batches, plan->options.micro_batches);
    EXPECT_EQ(options->schedule, plan->options.schedule);
    EXPECT_EQ(options->layout, plan->options.layout);
    EXPECT_EQ(options->order, plan->options.order);
    EXPECT_EQ(options->recompute_layers, plan->options.recompute_layers);
  }
}

TEST(ChoosePlanTest, LayersThatRunAgainTogetherAreNeitherShardedNorOffloadedOneByOne) {
  EXPECT_EQ(Choose("tp=8,pp=4,recompute=uniform:3")->chosen.at("recompute"), "uniform:3");
  EXPECT_EQ(Choose("tp=8,pp=4,recompute=uniform:1")->chosen.at("recompute"), "full");
  EXPECT_TRUE(Choose("tp=8,zero=3,recompute=uniform:1").ok());
  EXPECT_THAT(Choose("tp=8,zero=3,recompute=uniform:3").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("recompute=uniform:3 recomputes layers together, and zero=3")));
  EXPECT_THAT(Choose("tp=8,recompute=uniform:3,offload=activations:2").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("leave the offload out")));
}

TEST(ChoosePlanTest, LayersThatRunAgainTogetherMayBeOneUnit) {
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=8,zero=3,recompute=uniform:3,unit=3"));
  EXPECT_EQ(plan.options.recompute_joined, 3);
  EXPECT_EQ(plan.options.unit_layers, 3);
  EXPECT_THAT(Choose("tp=8,zero=3,recompute=uniform:3,unit=2").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("zero=3 shards them by 2. Use unit=3, ")));
}

TEST(ChoosePlanTest, UnitsOfSeveralLayersNeedWhatIsSharded) {
  for (const char* text : {"tp=8,unit=2", "tp=8,zero=1,unit=2"}) {
    EXPECT_THAT(Choose(text).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("Use zero=2 or zero=3, or leave `unit`")));
  }
  EXPECT_EQ(Choose("tp=8,zero=2,unit=2")->options.unit_layers, 2);
  EXPECT_EQ(Choose("tp=8,zero=2,unit=2")->chosen.at("unit"), "2");
  EXPECT_EQ(Choose("tp=8,zero=3")->chosen.at("unit"), "1");
  EXPECT_THAT(Choose("tp=8,pp=8,zero=3,unit=2")->notes, Contains("unit=2 has no effect with dp=1"));
  EXPECT_THAT(Choose("tp=8,unit=1")->notes, Contains("unit=1 has no effect with zero=0"));
  EXPECT_THAT(Choose("tp=8,zero=3,unit=2,offload=activations").status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("unit=2 with offload")));
  PlanContext context = Context();
  context.node_zero = 3;
  EXPECT_EQ(Choose("tp=8,unit=2", context)->options.unit_layers, 2);
}

TEST(ChoosePlanTest, ReportsTheValueOfEveryKey) {
  ASSERT_OK_AND_ASSIGN(SoftwareProfile profile, FindSoftwareProfile("megatron-2021"));
  PlanContext context = Context();
  context.vocab = 50257;
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan,
                       Choose("tp=8,sp,pp=8,vpp=3,recompute=full:2", context, profile));
  const auto& chosen = plan.chosen;
  EXPECT_EQ(chosen.at("dp"), "1");
  EXPECT_EQ(chosen.at("sp"), "1");
  EXPECT_EQ(chosen.at("accum"), "64");
  EXPECT_EQ(chosen.at("schedule"), "interleaved");
  EXPECT_EQ(chosen.at("recompute"), "full:2");
  EXPECT_EQ(chosen.at("attn"), "unfused");
  EXPECT_EQ(chosen.at("layout"), "4x24");
  EXPECT_EQ(chosen.at("order"), "tp-cp-ep-dp-pp");
  EXPECT_EQ(chosen.at("profile"), "megatron-2021");
  EXPECT_EQ(chosen.at("vocab"), "51200");
  EXPECT_EQ(chosen.at("overlap"), "none");
}

// Mixtral 8x7B on 64 GPUs.
PlanContext Mixtral() {
  PlanContext context = Context();
  context.layers = 32;
  context.heads = 32;
  context.kv_heads = 8;
  context.hidden = 4096;
  context.ffn = 0;
  context.experts = 8;
  context.expert_ffn = 14336;
  return context;
}

TEST(ChoosePlanTest, ExpertsAreCutOverPartsOfTheStage) {
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=4,sp,pp=2,ep=8", Mixtral()));
  EXPECT_EQ(plan.options.dp, 8);
  EXPECT_EQ(plan.options.ep, 8);
  EXPECT_EQ(plan.options.etp, 4);
  EXPECT_EQ(plan.chosen.at("ep"), "8");
  EXPECT_EQ(plan.chosen.at("etp"), "4");
  EXPECT_EQ(Choose("tp=4,sp,ep=8,etp=1", Mixtral())->options.etp, 1);
  EXPECT_OK(Choose("tp=4,sp,ep=2,etp=2", Mixtral()).status());
  EXPECT_EQ(Choose("tp=4,sp")->chosen.count("ep"), 0u);
}

TEST(ChoosePlanTest, ExpertMeshesThatDoNotFitAreErrors) {
  const auto error = [](const char* text, const PlanContext& context) {
    return std::string(Choose(text, context).status().message());
  };
  EXPECT_EQ(error("ep=2", Context()), "ep=2 splits experts, and the model has none. Leave ep out.");
  EXPECT_EQ(error("tp=2,etp=1", Context()),
            "etp=1 splits experts, and the model has none. Leave etp out.");
  EXPECT_EQ(error("ep=3", Mixtral()),
            "ep=3 does not divide the 8 experts. Sizes that work: 1, 2, 4, 8.");
  EXPECT_EQ(error("tp=8,pp=2,etp=8,ep=8", Mixtral()),
            "ep=8 times etp=8 does not divide the dp*cp*tp = 4*1*8 ranks of a stage. With etp=8, "
            "ep can be 1, 2, 4.");
  PlanContext twelve = Mixtral();
  twelve.devices = 48;
  twelve.experts = 12;
  twelve.global_batch = 48;
  EXPECT_EQ(error("tp=4,etp=1,ep=6", twelve),
            "ep=6 times etp=1 and tp=4: neither divides the other. With etp=1, ep can be 1, 2, 4, "
            "12.");
  twelve.expert_ffn = 14336 / 7;
  EXPECT_EQ(error("etp=3", twelve),
            "etp=3 does not divide the feed-forward size of an expert, 2048. Sizes that work: 1, "
            "2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048.");
}

TEST(ChoosePlanTest, ScheduleFollowsStages) {
  EXPECT_EQ(Choose("tp=8")->options.schedule, Schedule::kNone);
  EXPECT_EQ(Choose("pp=8,vpp=2")->options.schedule, Schedule::kInterleaved);
  EXPECT_EQ(Choose("pp=8,schedule=gpipe")->options.schedule, Schedule::kGpipe);
  EXPECT_EQ(Choose("pp=8,schedule=interleaved")->options.schedule, Schedule::k1f1b);
  EXPECT_EQ(Choose("pp=8,schedule=breadth-first")->options.schedule, Schedule::kGpipe);
  EXPECT_EQ(Choose("pp=8,vpp=2,schedule=breadth-first")->options.schedule, Schedule::kBreadthFirst);
  EXPECT_EQ(Choose("pp=8,schedule=eager-1f1b")->options.schedule, Schedule::kEager1f1b);
}

TEST(ChoosePlanTest, BatchMayBeLeftToAccumulation) {
  PlanContext context = Context();
  context.global_batch.reset();
  EXPECT_EQ(Choose("tp=8,accum=6", context)->options.micro_batches, 6);
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=8", context));
  EXPECT_EQ(plan.options.micro_batches, 1);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("one micro-batch")));
}

TEST(ChoosePlanTest, UnevenLayersAreReported) {
  PlanContext context = Context();
  context.layers = 94;
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=8,pp=8", context));
  EXPECT_THAT(plan.options.layout, ElementsAre(11, 12, 12, 12, 12, 12, 12, 11));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("layout=11+12x6+11")));
}

TEST(ChoosePlanTest, WhatHasNoEffectIsNotedNotRefused) {
  ASSERT_OK_AND_ASSIGN(const ChosenPlan sp, Choose("sp"));
  EXPECT_FALSE(sp.options.sp);
  EXPECT_THAT(sp.notes, Contains("sp has no effect with tp=1"));
  ASSERT_OK_AND_ASSIGN(const ChosenPlan vpp, Choose("tp=8,vpp=3,schedule=1f1b"));
  EXPECT_EQ(vpp.options.vpp, 1);
  EXPECT_THAT(vpp.notes, Contains("vpp=3 has no effect with pp=1"));
  EXPECT_THAT(vpp.notes, Contains("schedule=1f1b has no effect with pp=1"));
  EXPECT_THAT(Choose("tp=8,pp=8,zero=1")->notes, Contains("zero=1 has no effect with dp=1"));
  EXPECT_THAT(Choose("overlap=param")->notes, Contains("overlap=param has no effect with zero=0"));
  EXPECT_THAT(Choose("pp=8,recompute=full:12")->notes, Contains(HasSubstr("all layers")));
}

TEST(ChoosePlanTest, OverlapOfTensorParallelismNeedsCutSequences) {
  EXPECT_THAT(Choose("tp=8,overlap=grad+tp")->notes,
              Contains(HasSubstr("overlap=tp has no effect without sp")));
  EXPECT_THAT(Choose("tp=8,sp,overlap=grad+tp")->notes, IsEmpty());
  EXPECT_THAT(Choose("tp=8,overlap=grad")->notes, IsEmpty());
}

TEST(ChoosePlanTest, MicroBatchesNeedNotBeAMultipleOfTheStages) {
  PlanContext context = Context();
  context.global_batch = 12;
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=8,pp=8,vpp=2", context));
  EXPECT_EQ(plan.options.micro_batches, 12);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("not a multiple of pp=8")));
}

TEST(ChoosePlanTest, ProfileSaysWhatTheStrategyDoesNot) {
  SoftwareProfile profile;
  profile.data_parallel.overlap = {Overlap::kGrad, Overlap::kParam};
  profile.data_parallel.bucket_bytes = 7;
  profile.kernels.attention = Attention::kUnfused;
  ASSERT_OK_AND_ASSIGN(const ChosenPlan silent, Choose("zero=1", Context(), profile));
  EXPECT_THAT(silent.options.overlap, ElementsAre(Overlap::kGrad, Overlap::kParam));
  EXPECT_EQ(silent.options.bucket_bytes, 7);
  EXPECT_EQ(silent.options.attention, Attention::kUnfused);
  ASSERT_OK_AND_ASSIGN(const ChosenPlan said,
                       Choose("overlap=none,bucket=1KB,attn=flash", Context(), profile));
  EXPECT_THAT(said.options.overlap, IsEmpty());
  EXPECT_EQ(said.options.bucket_bytes, 1000);
  EXPECT_EQ(said.options.attention, Attention::kFlash);
}

TEST(ChoosePlanTest, AFirstBucketIsOfSoftwareThatHasOne) {
  SoftwareProfile profile;
  profile.name = "mine";
  profile.data_parallel.overlap = {Overlap::kGrad};
  profile.data_parallel.bucket_bytes = 25;
  EXPECT_THAT(Choose("first_bucket=1MiB", Context(), profile).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("first_bucket=1MiB: in profile mine the first bucket")));
  profile.data_parallel.first_bucket_bytes = 5;
  const auto first = [&](const std::string& plan) {
    return Choose(plan, Context(), profile)->options.first_bucket_bytes;
  };
  EXPECT_EQ(first("tp=8"), 5);
  EXPECT_EQ(first("tp=8,bucket=100B"), 0);
  EXPECT_EQ(first("tp=8,bucket=100B,first_bucket=7B"), 7);
  EXPECT_EQ(first("tp=8,bucket=50B,first_bucket=60B"), 0);
  EXPECT_EQ(Choose("tp=8", Context(), profile)->chosen.at("first_bucket"), "5B");
  // Without effect it is noted.
  const auto notes = [](const std::string& plan) { return Choose(plan, Context())->notes; };
  const auto noted = Contains(HasSubstr("bucket=1MB has no effect without overlap=grad"));
  EXPECT_THAT(notes("tp=8,overlap=none,bucket=1MB"), noted);
  EXPECT_THAT(notes("tp=8,zero=1,overlap=param,bucket=1MB"), Not(noted));
}

TEST(ChoosePlanTest, KeyValueHeadsMayBeFewerThanTp) {
  PlanContext context = Context();
  context.heads = 64;
  context.kv_heads = 2;
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=8", context));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("replicated 4 times")));
}

TEST(ChoosePlanTest, WhatCannotBePutOffYetIsRefused) {
  EXPECT_TRUE(Choose("tp=8,pp=4,schedule=zb1p,zero=2")->options.splits_backward());
  EXPECT_TRUE(Choose("tp=8,pp=4,schedule=zbh1,offload=activations")->options.splits_backward());
  SoftwareProfile fresh;
  fresh.update.fresh_gradients = true;
  EXPECT_THAT(Choose("tp=8,pp=4,schedule=zb2p", Context(), fresh),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("made anew")));
}

TEST(ChoosePlanTest, UnknownFactsAreNotChecked) {
  PlanContext context;
  context.devices = 12;
  context.layers = 2;
  EXPECT_OK(Choose("tp=12", context));
}

struct Mistake {
  const char* text;
  const char* message;
};
class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsNamedWithWhatWouldBeRight) {
  PlanContext context = Context();
  context.devices = 96;
  context.heads = 64;
  context.kv_heads = 8;
  context.ffn = 28672;
  context.global_batch = 96;
  EXPECT_THAT(Choose(GetParam().text, context),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, MistakeTest,
    ::testing::Values(
        Mistake{"tp=12",
                "tp=12 does not divide the 64 attention heads. Sizes that work: 1, 2, 4, 8, 16, "
                "32, 64."},
        Mistake{"tp=5", "does not divide the 96 devices of the machine. tp can be 1, 2, 3, 4,"},
        Mistake{"tp=8,pp=5", "With tp=8, pp can be 1, 2, 3, 4, 6, 12."},
        Mistake{"dp=4,tp=8", "With this tp and pp, dp is 12; leave dp out to have it derived."},
        Mistake{"tp=1000000000,pp=1000000000", "does not divide the 96 devices"},
        Mistake{"tp=8,mb=3", "not divisible by dp*mb = 12*3. With dp=12, mb can be 1, 2, 4, 8."},
        Mistake{"tp=8,accum=3", "accum=3 contradicts the batch: 96 / (dp=12 * mb=1) is 8."},
        Mistake{"tp=8,pp=2,schedule=F0 B0;F0 B0", "ends at position 2 without `F1.0`"},
        Mistake{"pp=4,vpp=2,schedule=eager-1f1b", "Use schedule=interleaved, or leave vpp out."},
        Mistake{"pp=4,vpp=2,schedule=1f1b", "Use schedule=interleaved, or leave vpp out."},
        Mistake{"pp=96,vpp=2",
                "more than the 96 layers of the model. pp*vpp can be 96 at most, or 98 with the "
                "embedding and the loss on stages of their own."},
        Mistake{"pp=96,vpp=1000000", "more than 100000 virtual stages"},
        Mistake{"pp=4,layout=24x3", "lists 3 virtual stages, and pp*vpp = 4*1 is 4."},
        Mistake{"pp=4,layout=24x3+23", "has 95 layers, and the model 96."}),
    [](const ::testing::TestParamInfo<Mistake>& info) { return std::to_string(info.index); });

TEST(ChoosePlanTest, RefusesImpossibleJobs) {
  const auto code = absl::StatusCode::kInvalidArgument;
  PlanContext context = Context();
  context.global_batch = 0;
  EXPECT_THAT(Choose("tp=8", context), StatusIs(code, HasSubstr("the batch is 0")));
  context.global_batch = 100;
  EXPECT_THAT(Choose("tp=8,pp=1", context),
              StatusIs(code, HasSubstr("No mb works with dp=8: dp must be a divisor of 100, or "
                                       "the batch a multiple of 8.")));
  context = Context();
  context.devices = 0;
  EXPECT_THAT(Choose("tp=8", context), StatusIs(code, HasSubstr("0 devices")));
  context = Context();
  context.seq = 2044;
  EXPECT_THAT(Choose("tp=8,sp", context), StatusIs(code, HasSubstr("Sizes that work: 1, 2, 4")));
  context = Context();
  context.ffn = 12;
  EXPECT_THAT(Choose("tp=8", context), StatusIs(code, HasSubstr("feed-forward size 12")));
  context = Context();
  context.heads = 96;
  context.kv_heads = 12;
  EXPECT_THAT(Choose("tp=8", context), StatusIs(code, HasSubstr("neither divides the other")));
}

TEST(ChoosePlanTest, PairsNeedExpertsAndMicroBatches) {
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("overlap=grad+ep"));
  EXPECT_FALSE(plan.options.makes_pairs());
  EXPECT_THAT(plan.notes, Contains(HasSubstr("overlap=ep has no effect with ep=1")));
}

TEST(ChoosePlanTest, PairsOfStagesNeedPassesAhead) {
  PlanContext context = Context();
  context.experts = 4;
  const auto notes = [&](const char* schedule) {
    return Choose(absl::StrCat("tp=1,pp=2,ep=2,mb=1,overlap=ep", schedule), context)->notes;
  };
  const auto waits = Contains(HasSubstr("stages wait for each other's pairs"));
  EXPECT_THAT(notes(""), waits);
  EXPECT_THAT(notes(",schedule=eager-1f1b"), Not(waits));
  EXPECT_THAT(notes(",vpp=2"), Not(waits));
}

TEST(ChooseLayoutTest, RedisDealsLayersByWork) {
  PlanContext context;
  context.layers = 8;
  context.vocab = 1000;
  context.deal = [](int64_t stages) {
    return stages > 10 ? std::vector<int64_t>() : std::vector<int64_t>{4, 4, 0};
  };
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("vocab_parallel=redis"));
  PlanOptions options;
  options.pp = 3;
  EXPECT_OK(ChooseLayout(form, context, &options));
  EXPECT_THAT(options.layout, ElementsAre(4, 4, 0));
  options.pp = 11;
  EXPECT_THAT(ChooseLayout(form, context, &options).status().message(),
              HasSubstr("more than the 8 layers of the model"));
  options.pp = 3, options.vpp = 2;
  EXPECT_THAT(ChooseLayout(form, context, &options),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("not supported yet: vocab_parallel=redis with vpp=2")));
  options.vpp = 1;
  ASSERT_OK_AND_ASSIGN(const ShortForm both, ParseShortForm("vocab_parallel=redis,layout=3+3+2"));
  EXPECT_THAT(ChooseLayout(both, context, &options).status().message(),
              HasSubstr("vocab_parallel=redis and layout=3x2+2 both say what stages hold"));
  context.vocab = 0;
  EXPECT_THAT(ChooseLayout(form, context, &options).status().message(),
              HasSubstr("the model has no vocabulary"));
}

TEST(ChoosePlanTest, ASpreadVocabularyGoesWithPlain1f1b) {
  PlanContext context = Context();
  context.vocab = 1000;
  ASSERT_OK_AND_ASSIGN(const ChosenPlan plan, Choose("tp=8,pp=4,vocab_parallel=vocab2", context));
  EXPECT_EQ(plan.options.vocab_parallel, VocabParallel::kVocab2);
  EXPECT_EQ(plan.chosen.at("vocab_parallel"), "vocab2");
  ASSERT_OK_AND_ASSIGN(const ChosenPlan one, Choose("tp=8,vocab_parallel=vocab2", context));
  EXPECT_THAT(one.notes, Contains("vocab_parallel=vocab2 has no effect with pp=1"));
  EXPECT_EQ(one.options.vocab_parallel, VocabParallel::kEnds);
  for (const char* with : {"vpp=2", "schedule=zb1p", "schedule=gpipe", "zero=2", "sync=each",
                           "offload=optimizer", "optimizer=post-validated"}) {
    const std::string text = std::string("tp=8,pp=4,mb=1,vocab_parallel=vocab1,") + with;
    EXPECT_THAT(Choose(text, context),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("with vocab_parallel=vocab1")))
        << text;
  }
  context.vocab = 0;
  EXPECT_THAT(Choose("tp=8,pp=4,vocab_parallel=vocab1", context).status().message(),
              HasSubstr("the model has none"));
}

TEST(ChooseLayoutTest, StagesThatATreeListsTakeThePlaceOfTheLayout) {
  PlanOptions options;
  options.pp = 2;
  PlanContext context;
  context.layers = 4;
  context.stages = std::vector<ModelCut>{{1, 2, 3}};
  EXPECT_OK(ChooseLayout(ShortForm(), context, &options));
  EXPECT_THAT(options.layout, IsEmpty());
  EXPECT_EQ(options.cuts, *context.stages);
  options.vpp = 2;
  EXPECT_THAT(ChooseLayout(ShortForm(), context, &options).status().message(),
              HasSubstr("`stages` lists 2 stages, and pp*vpp = 2*2 is 4"));
}

TEST(ChooseLayoutTest, ModelsOfFewerModulesThanStagesAreCutInsideOfThem) {
  PlanOptions options;
  options.pp = 4;
  PlanContext context;
  context.layers = 2;
  int asked = 0;
  context.cut = [&](int64_t stages) -> absl::StatusOr<std::vector<ModelCut>> {
    ++asked;
    return std::vector<ModelCut>(stages - 1);
  };
  // With an embedding and a head there is a stage for each.
  EXPECT_OK(ChooseLayout(ShortForm(), context, &options));
  EXPECT_THAT(options.layout, ElementsAre(0, 1, 1, 0));
  context.work_before = context.work_after = false;
  EXPECT_OK(ChooseLayout(ShortForm(), context, &options));
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(options.layout, IsEmpty());
  EXPECT_EQ(options.cuts.size(), 3u);
  context.cut = nullptr;
  EXPECT_THAT(ChooseLayout(ShortForm(), context, &options).status().message(),
              HasSubstr("more than the 2 layers of the model. pp*vpp can be 2 at most."));
}

TEST(DefaultLayoutTest, IsEvenThenOneLessAtTheEndsThenSurplusInTheMiddle) {
  EXPECT_THAT(DefaultLayout(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(DefaultLayout(10, 4), ElementsAre(2, 3, 3, 2));
  EXPECT_THAT(DefaultLayout(9, 4), ElementsAre(2, 3, 2, 2));
  EXPECT_THAT(DefaultLayout(11, 4), ElementsAre(3, 3, 3, 2));
  EXPECT_THAT(DefaultLayout(3, 4), IsEmpty());
  EXPECT_THAT(DefaultLayout(4, 4), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(DefaultLayout(2, 4), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(DefaultLayout(126, 128).front(), 0);  // Llama 3 405B on pp=16, vpp=8
  EXPECT_THAT(DefaultLayout(126, 128)[1], 1);
  EXPECT_THAT(DefaultLayout(125, 128), IsEmpty());
}

TEST(DefaultLayoutTest, LosesNoLayer) {
  for (int64_t layers = 1; layers <= 40; ++layers) {
    for (int64_t stages = 1; stages <= layers; ++stages) {
      int64_t sum = 0;
      for (int64_t each : DefaultLayout(layers, stages)) {
        EXPECT_GE(each, 1);
        sum += each;
      }
      EXPECT_EQ(sum, layers);
    }
  }
}

}  // namespace
}  // namespace plancast
