#include "strategy/software_profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "strategy/profile/additions.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(SoftwareProfileTest, EveryShippedProfileReadsAndIsNamedAsItsFile) {
  for (const std::string& name : SoftwareProfileNames()) {
    ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, FindSoftwareProfile(name));
    EXPECT_EQ(profile.name, name);
    EXPECT_FALSE(profile.description.empty()) << name;
    EXPECT_GT(profile.host.launch_s, 0) << name;
    EXPECT_GE(profile.memory.context_bytes, 5e8) << name;
    EXPECT_EQ(profile.memory.allocator.block_bytes, 512) << name;
    EXPECT_GT(profile.memory.allocator.fragmentation, 0) << name;
    EXPECT_GT(profile.memory.communicators.channels, 0) << name;
  }
  EXPECT_THAT(SoftwareProfileNames(),
              IsSupersetOf({"megatron-2021", "megatron-core", "megatron-deepspeed",
                            "megatron-bridge", "torchtitan", "fsdp", "ddp", "composer", "deepspeed",
                            "eager", "compiled", "pytorch-fsdp"}));
}

TEST(SoftwareProfileTest, AnUnknownNameGetsTheNearest) {
  EXPECT_THAT(FindSoftwareProfile("megatron-cor"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no software profile `megatron-cor`. Did you mean "
                                 "`megatron-core`?")));
}

TEST(SoftwareProfileTest, EveryAdditionAddsToEveryProfile) {
  for (const std::string& name : SoftwareProfileNames()) {
    for (const std::string& addition : ProfileAdditionNames()) {
      EXPECT_THAT(SoftwareProfileNames(), Not(Contains(addition)));
      const std::string both = absl::StrCat(name, "+", addition);
      ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, FindSoftwareProfile(both));
      EXPECT_EQ(profile.name, both);
      EXPECT_EQ(profile.base(), name);
    }
  }
}

TEST(SoftwareProfileTest, AdditionsReplaceWhatTheyAreAbout) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile plain, FindSoftwareProfile("deepspeed"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile,
                       FindSoftwareProfile("deepspeed+liger+flash-attention-3"));
  EXPECT_EQ(profile.kernels.attention_kernel, "flash-attention-3");
  EXPECT_EQ(profile.kernels.extra.count("rms_norm"), 0);
  EXPECT_EQ(plain.kernels.extra.count("rms_norm"), 1);
  EXPECT_EQ(profile.kernels.eager.count("lora_add"), 1);
  EXPECT_EQ(profile.lineage, plain.lineage);
  EXPECT_EQ(profile.data_parallel.bucket_bytes, plain.data_parallel.bucket_bytes);
  EXPECT_THAT(FindSoftwareProfile("deepspeed+ligre"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("profile `deepspeed+ligre`"), HasSubstr("`liger`?"))));
  EXPECT_THAT(FindSoftwareProfile("deepspeed+liger+liger"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("adds `liger` twice")));
  EXPECT_THAT(FindSoftwareProfile("deepspeed+"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(FindSoftwareProfile("+liger"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(SoftwareProfileTest, PadsTheVocabularyForEveryTpRank) {
  SoftwareProfile profile;
  profile.kernels.vocab_pad_multiple = 128;
  EXPECT_EQ(profile.PaddedVocab(50257, 1), 50304);
  EXPECT_EQ(profile.PaddedVocab(50257, 8), 51200);
  EXPECT_EQ(profile.PaddedVocab(51200, 8), 51200);
  profile.kernels.vocab_pad_multiple = 0;
  EXPECT_EQ(profile.PaddedVocab(50257, 8), 50257);
}

TEST(SoftwareProfileTest, MegatronReducesFp16GradientsInFp16AndBf16OnesInFp32) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, FindSoftwareProfile("megatron-2021"));
  const SoftwareProfile fp16 = profile.For(DType::kFp16, Schedule::kNone);
  EXPECT_EQ(fp16.types.grad_dtype, DType::kFp16);
  EXPECT_EQ(fp16.types.reduce_dtype, DType::kFp16);
  EXPECT_TRUE(fp16.update.fp16_overflow_check);
  const SoftwareProfile bf16 = profile.For(DType::kBf16, Schedule::kNone);
  EXPECT_EQ(bf16.types.grad_dtype, DType::kFp32);
  EXPECT_EQ(bf16.types.reduce_dtype, DType::kFp32);
  EXPECT_FALSE(bf16.update.fp16_overflow_check);
  EXPECT_EQ(bf16.types.state_dtype, DType::kFp32);
}

TEST(SoftwareProfileTest, InterleavedSendsOverlapInMegatronCore) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, FindSoftwareProfile("megatron-core"));
  EXPECT_TRUE(profile.For(DType::kBf16, Schedule::k1f1b).pipeline.p2p_blocking);
  EXPECT_FALSE(profile.For(DType::kBf16, Schedule::kInterleaved).pipeline.p2p_blocking);
  EXPECT_FALSE(profile.For(DType::kBf16, Schedule::kInterleaved).pipeline.p2p_host_sync);
  EXPECT_TRUE(profile.For(DType::kBf16, Schedule::kInterleaved).pipeline.ends_block);
  EXPECT_FALSE(profile.For(DType::kBf16, Schedule::k1f1b).pipeline.ends_block);
}

constexpr char kSmall[] = R"pb(
  name: "mine"
  default_attention: "flash"
  grad_dtype: "fp32"
  reduce_dtype: "bf16"
  state_dtype: "fp32"
  default_overlap: "grad"
  bucket_bytes: 1000
  comm_scale: 1
)pb";

TEST(SoftwareProfileTest, ReadsAProfileOfTheUsersOwn) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, ParseSoftwareProfile(kSmall, "mine"));
  EXPECT_EQ(profile.types.reduce_dtype, DType::kBf16);
  EXPECT_EQ(profile.data_parallel.overlap, std::set<Overlap>{Overlap::kGrad});
  EXPECT_FALSE(profile.update.grad_clip);
}

TEST(SoftwareProfileTest, LinksAreSharedByMaxMinUnlessItSaysOtherwise) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, ParseSoftwareProfile(kSmall, "mine"));
  EXPECT_EQ(profile.contention.link_sharing, LinkSharing::kMaxMin);
  const std::string text =
      absl::StrReplaceAll(kSmall, {{"comm_scale: 1", "comm_scale: 1 link_sharing: \"priority\""}});
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile urgent, ParseSoftwareProfile(text, "mine"));
  EXPECT_EQ(urgent.contention.link_sharing, LinkSharing::kPriority);
}

TEST(SoftwareProfileTest, InterferenceIsByTheGpusDataUnlessItSaysOtherwise) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, ParseSoftwareProfile(kSmall, "mine"));
  EXPECT_EQ(profile.contention.interference, std::nullopt);
  EXPECT_EQ(profile.contention.comm_interference, std::nullopt);
  const std::string text = absl::StrReplaceAll(
      kSmall, {{"comm_scale: 1", "comm_scale: 1 interference: 0.1 comm_interference: 0"}});
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile own, ParseSoftwareProfile(text, "mine"));
  EXPECT_EQ(own.contention.interference, 0.1);
  EXPECT_EQ(own.contention.comm_interference, 0);
}

TEST(SoftwareProfileTest, OfSeveralThingsAroundAnOpTheLastCounts) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile base, FindSoftwareProfile("nvidia-pytorch"));
  EXPECT_EQ(base.kernels.extra.at("softmax").forward_passes, 2);
  EXPECT_TRUE(base.kernels.extra.at("softmax").fp32);
  ASSERT_OK_AND_ASSIGN(
      const SoftwareProfile own,
      ParseSoftwareProfile(
          "name: \"mine\" like: \"nvidia-pytorch\" extra_kernels { rule: \"softmax\" }", "mine"));
  EXPECT_EQ(own.kernels.extra.at("softmax").forward_passes, 0);
  EXPECT_FALSE(own.kernels.extra.at("softmax").fp32);
  EXPECT_TRUE(own.kernels.extra.at("attention_dropout").fp32);
  EXPECT_NE(own.StructureKey(), base.StructureKey());
}

TEST(SoftwareProfileTest, TheFirstBucketIsSmallOfDdpAlone) {
  for (const auto& [name, bytes] :
       std::vector<std::pair<std::string, int64_t>>{{"ddp", 1048576},
                                                    {"nvidia-pytorch", 1048576},
                                                    {"nvidia-mxnet", 0},
                                                    {"nvidia-paddle", 0},
                                                    {"nvidia-tensorflow", 0},
                                                    {"nvidia-tensorflow-xla", 0},
                                                    {"megatron-core", 0}}) {
    ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, FindSoftwareProfile(name));
    EXPECT_EQ(profile.data_parallel.first_bucket_bytes, bytes) << name;
  }
}

TEST(SoftwareProfileTest, TransportsOfTensorParallelismAreData) {
  using Way = PartTransport::Way;
  const auto with = [](absl::string_view transports) {
    return ParseSoftwareProfile(
        absl::StrCat("name: \"mine\" like: \"megatron-core\" tp_transports { ", transports, " }"),
        "mine");
  };
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile base, FindSoftwareProfile("megatron-core"));
  EXPECT_EQ(base.kernels.tp_transports.gather.way, Way::kRing);
  EXPECT_EQ(base.kernels.tp_transports.scatter.pieces, 4);
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile own,
                       with("quantized_scatter { way: \"peers\" copy_engines: true }"));
  EXPECT_TRUE(own.kernels.tp_transports.gather.copy_engines);
  EXPECT_EQ(own.For(DType::kBf16, Schedule::kNone).kernels.tp_transports.scatter.way,
            Way::kCollective);
  EXPECT_EQ(own.For(DType::kFp8, Schedule::kNone).kernels.tp_transports.scatter.way, Way::kPeers);
  EXPECT_NE(own.StructureKey(), base.StructureKey());
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(with("gather { way: \"bus\" }").status(), StatusIs(code, HasSubstr("way is `bus`")));
  EXPECT_THAT(with("scatter { way: \"peers\" }").status(),
              StatusIs(code, HasSubstr("tp_transports.scatter")));  // with the 4 pieces of its like
  EXPECT_THAT(with("scatter { copy_engines: true }").status(),
              StatusIs(code, HasSubstr("they send from rank to rank")));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile slow,
                       with("quantized_scatter { way: \"peers\" sum_rate: 0.5 }"));
  EXPECT_EQ(slow.For(DType::kFp8, Schedule::kNone).kernels.tp_transports.scatter.sum_rate, 0.5);
  EXPECT_EQ(slow.kernels.tp_transports.streams, 3);
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile one, with("streams: 1"));
  EXPECT_EQ(one.kernels.tp_transports.streams, 1);
  EXPECT_THAT(with("streams: 0").status(), StatusIs(code, HasSubstr("streams is 0; it must be 1")));
  EXPECT_THAT(with("quantized_scatter { way: \"peers\" sum_rate: 2 }").status(),
              StatusIs(code, HasSubstr("sum_rate is 2 with way `peers`")));
  EXPECT_THAT(with("gather { way: \"ring\" spared: true }").status(),
              StatusIs(code, HasSubstr("spared with way `ring`")));
  EXPECT_THAT(with("gather { way: \"ring\" sum_rate: 0.5 }").status(),
              StatusIs(code, HasSubstr("sum_rate is 0.5 with way `ring`")));
}

TEST(SoftwareProfileTest, NamesThePlaceOfAMistake) {
  // kSmall with one line in place of another.
  const auto with = [](absl::string_view old_line, absl::string_view line) {
    return ParseSoftwareProfile(absl::StrReplaceAll(kSmall, {{old_line, line}}), "mine.textproto")
        .status();
  };
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(with("comm_scale: 1", "com_scale: 1"), StatusIs(code, HasSubstr("`comm_scale`")));
  EXPECT_THAT(with("comm_scale: 1", "comm_scale: 1 launch_s: 5"),
              StatusIs(code, HasSubstr("mine.textproto: launch_s is 5; it must be from")));
  EXPECT_THAT(with("comm_scale: 1", "comm_scale: 1 launch_s: -1e-6"),
              StatusIs(code, HasSubstr("launch_s is -1e-06")));
  EXPECT_THAT(with("comm_scale: 1", "comm_scale: 1 comm_interference: 10"),
              StatusIs(code, HasSubstr("comm_interference is 10; it must be from 0 to 1")));
  EXPECT_THAT(with("comm_scale: 1", "comm_scale: nan"),
              StatusIs(code, HasSubstr("comm_scale is nan")));
  EXPECT_THAT(with("comm_scale: 1", "comm_scale: 1 link_sharing: \"fifo\""),
              StatusIs(code, HasSubstr("link_sharing is `fifo`; it must be `max_min` or")));
  EXPECT_THAT(
      with("comm_scale: 1", "comm_scale: 1 extra_kernels { rule: \"softmax\" forward_casts: -1 }"),
      StatusIs(code, HasSubstr("extra_kernels `softmax` has a count that is not from 0 to 100")));
  EXPECT_THAT(with("fp32", "fp31"), StatusIs(code, HasSubstr("`fp31`")));
  EXPECT_THAT(with("flash", "fast"), StatusIs(code, HasSubstr("`fast`")));
  EXPECT_THAT(with("\"grad\"", "\"all\""), StatusIs(code, HasSubstr("`all`")));
  EXPECT_THAT(with("1000", "-1"), StatusIs(code, HasSubstr("bucket_bytes is -1")));
  EXPECT_THAT(with("bucket_bytes: 1000", "bucket_bytes: 1000 whole_reductions: \"adamant\""),
              StatusIs(code, HasSubstr("whole_reductions is `adamant`; it must be one of `adam`")));
  EXPECT_THAT(with("bucket_bytes: 1000", "bucket_bytes: 1000 parameter_hook_s: 1e-3"),
              StatusIs(code, HasSubstr("parameter_hook_s (of shard_cut `joined`) is 0.001")));
  EXPECT_THAT(with("bucket_bytes: 1000", "bucket_bytes: 1000 gathered_part_s: 1"),
              StatusIs(code, HasSubstr("gathered_part_s is 1; it must be from 0 to 0.01")));
  EXPECT_THAT(with("bucket_bytes: 1000", "bucket_bytes: 1000 first_bucket_bytes: 1001"),
              StatusIs(code, HasSubstr("first_bucket_bytes is 1001; it must be from 0 to")));
  EXPECT_THAT(with("comm_scale: 1", "comm_scale: 1 vocab_pad_multiple: -1"),
              StatusIs(code, HasSubstr("vocab_pad_multiple is -1")));
}

TEST(SoftwareProfileTest, ASwitchOfTheLikeIsTurnedOffByFalse) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile core, FindSoftwareProfile("megatron-core"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile bridge, FindSoftwareProfile("megatron-bridge"));
  EXPECT_EQ(core.For(DType::kFp8, Schedule::kNone).types.grad_dtype, DType::kFp32);
  EXPECT_EQ(bridge.For(DType::kFp8, Schedule::kNone).types.grad_dtype, DType::kBf16);
  EXPECT_EQ(bridge.kernels.fusions, core.kernels.fusions);
}

TEST(SoftwareProfileTest, PyTorchFsdpIsFsdp) {
  ASSERT_OK_AND_ASSIGN(SoftwareProfile former, FindSoftwareProfile("pytorch-fsdp"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile fsdp, FindSoftwareProfile("fsdp"));
  former.name = fsdp.name;
  EXPECT_EQ(former.StructureKey(), fsdp.StructureKey());
}

TEST(SoftwareProfileTest, WrappersOfPyTorchShareTheModulesBeneath) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile eager, FindSoftwareProfile("eager"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile ddp, FindSoftwareProfile("ddp"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile fsdp, FindSoftwareProfile("fsdp"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile composer, FindSoftwareProfile("composer"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile titan, FindSoftwareProfile("torchtitan"));
  EXPECT_EQ(eager.data_parallel.overlap, std::set<Overlap>{});
  EXPECT_EQ(ddp.data_parallel.overlap, std::set<Overlap>{Overlap::kGrad});
  EXPECT_EQ(fsdp.data_parallel.overlap, (std::set<Overlap>{Overlap::kGrad, Overlap::kParam}));
  EXPECT_EQ(ddp.kernels.eager, eager.kernels.eager);
  EXPECT_EQ(titan.kernels.eager, (std::set<std::string>{"rotary", "rotary_kv", "rotary_scaled",
                                                        "rotary_scaled_kv"}));  // complex numbers
  EXPECT_EQ(titan.data_parallel.overlap, fsdp.data_parallel.overlap);
  EXPECT_EQ(composer.For(DType::kBf16, Schedule::kNone).types.reduce_dtype, DType::kBf16);
  EXPECT_EQ(fsdp.For(DType::kBf16, Schedule::kNone).types.reduce_dtype, DType::kFp32);
}

TEST(SoftwareProfileTest, ProductsAreKnownByTheLastPartOfTheirName) {
  SoftwareProfile profile;
  profile.types.unquantized = {"router"};
  EXPECT_FALSE(profile.Quantizes("mlp.router"));
  EXPECT_FALSE(profile.Quantizes("router"));
  EXPECT_TRUE(profile.Quantizes("router.fc1"));
}

TEST(SoftwareProfileTest, IsLikeAnotherAndAddsToItsLists) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile base, FindSoftwareProfile("layouts-2023-rms-kernel"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile like, FindSoftwareProfile("layouts-2023-torch"));
  EXPECT_EQ(like.name, "layouts-2023-torch");
  EXPECT_EQ(like.host.launch_s, base.host.launch_s);
  EXPECT_EQ(like.kernels.attention, Attention::kUnfused);
  std::set<std::string> more = base.kernels.eager;
  more.insert({"rms_norm", "softmax_causal"});
  EXPECT_EQ(like.kernels.eager, more);
}

TEST(SoftwareProfileTest, EagerModulesFuseNothingButBiasesOfProducts) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile compiled, FindSoftwareProfile("compiled"));
  for (const char* name :
       {"eager", "ddp", "fsdp", "deepspeed", "transformers", "deepspeed+gpt2-modules"}) {
    ASSERT_OK_AND_ASSIGN(const SoftwareProfile profile, FindSoftwareProfile(name));
    EXPECT_EQ(profile.kernels.fusions.count("product_bias"), 1) << name;
    for (const char* fused : {"bias_gelu", "bias_dropout_add"}) {
      EXPECT_EQ(compiled.kernels.fusions.count(fused), 1) << fused;
      EXPECT_EQ(profile.kernels.fusions.count(fused), 0) << name << ", " << fused;
    }
  }
}

TEST(SoftwareProfileTest, SomeFusionsAreForHalfPrecision) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile mxnet, FindSoftwareProfile("nvidia-mxnet"));
  const auto fused = [&](DType dtype) {
    return mxnet.For(dtype, Schedule::kNone).kernels.fusions.count("bn_relu") > 0;
  };
  EXPECT_TRUE(fused(DType::kFp16));
  EXPECT_TRUE(fused(DType::kBf16));
  EXPECT_FALSE(fused(DType::kTf32));
  EXPECT_FALSE(fused(DType::kFp32));
}

TEST(SoftwareProfileTest, CapturesPartsOfLayersThatItKnows) {
  ASSERT_OK_AND_ASSIGN(SoftwareProfile profile, FindSoftwareProfile("megatron-core"));
  const std::string whole = profile.StructureKey();
  ASSERT_OK(profile.Capture("attn+moe_router"));
  EXPECT_NE(profile.StructureKey(), whole);
  bool begins = false;
  EXPECT_TRUE(profile.calls.Captures("attn.norm", &begins));
  EXPECT_TRUE(begins);
  EXPECT_TRUE(profile.calls.Captures("attn.core", &begins));
  EXPECT_FALSE(begins);
  EXPECT_FALSE(profile.calls.Captures("mlp.experts.fc1", &begins));
  EXPECT_THAT(profile.Capture("atn"), StatusIs(absl::StatusCode::kInvalidArgument,
                                               testing::HasSubstr("Did you mean `attn`?")));
  ASSERT_OK_AND_ASSIGN(SoftwareProfile eager, FindSoftwareProfile("eager"));
  EXPECT_THAT(eager.Capture("attn"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("captures no parts of layers as CUDA graphs")));
}

// What is captured as a whole does not wait for the host.
TEST(SoftwareProfileTest, GraphsOfWholePassesDoNotWait) {
  ASSERT_OK_AND_ASSIGN(SoftwareProfile profile, FindSoftwareProfile("megatron-core"));
  EXPECT_FALSE(profile.For(DType::kBf16, Schedule::kNone).calls.waits.empty());
  profile.host.cuda_graphs = true;
  EXPECT_TRUE(profile.For(DType::kBf16, Schedule::kNone).calls.waits.empty());
}

TEST(SoftwareProfileTest, CallsAreCheckedWithTheirPlace) {
  const auto error = [](const std::string& text) {
    return ParseSoftwareProfile("like: \"ddp\" " + text, "mine.textproto").status();
  };
  EXPECT_THAT(error("forward_calls: -1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("mine.textproto: forward_calls is -1")));
  EXPECT_THAT(error("quantize_launches { type: \"bf16\" launches: 1 }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("the type must have 8 or 4 bits")));
  for (const char* said :
       {"type: \"mxfp8\" ordered_scales: \"rows\"", "type: \"fp8\" ordered_scales: \"none\""}) {
    EXPECT_THAT(error(absl::StrCat("quantize_launches { launches: 1 ", said, " }")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr("it must be one of `both`, `activations`, `none`, of "
                                            "`mxfp8` or `nvfp4`")));
  }
  EXPECT_THAT(error("default_graph_scopes: \"attn\""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("which graph_scopes does not")));
}

TEST(SoftwareProfileTest, LikeNamesAShippedProfile) {
  EXPECT_THAT(ParseSoftwareProfile("like: \"megatron-cor\"", "mine.textproto"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("`like` names `megatron-cor`")));
}

TEST(SoftwareProfileTest, AutoModelKeepsNothingInFp32) {
  for (const auto& [name, reduced] : std::vector<std::pair<std::string, DType>>{
           {"automodel", DType::kBf16}, {"automodel-moe", DType::kFp32}}) {
    ASSERT_OK_AND_ASSIGN(const SoftwareProfile shipped, FindSoftwareProfile(name));
    const SoftwareProfile profile = shipped.For(DType::kBf16, Schedule::kNone);
    EXPECT_EQ(profile.MasterType(DType::kBf16), std::nullopt) << name;
    EXPECT_EQ(profile.types.state_dtype, DType::kBf16) << name;
    EXPECT_EQ(profile.types.grad_dtype, DType::kBf16) << name;
    EXPECT_EQ(profile.types.reduce_dtype, reduced) << name;
    EXPECT_FALSE(profile.update.fp16_overflow_check) << name;
  }
}

TEST(SoftwareProfileTest, AutoModelsMixturesGatherOnceAMicroBatchAndItsBenchmarksOnce) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile dense, FindSoftwareProfile("automodel"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile mixture, FindSoftwareProfile("automodel-moe"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile benchmark, FindSoftwareProfile("automodel-benchmark"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile before, FindSoftwareProfile("automodel-2025"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile flex, FindSoftwareProfile("automodel-flex"));
  EXPECT_TRUE(dense.data_parallel.reshard);
  EXPECT_TRUE(dense.data_parallel.root_unit);
  EXPECT_FALSE(mixture.data_parallel.root_unit);
  for (const SoftwareProfile* profile : {&dense, &mixture, &benchmark, &before, &flex}) {
    const SoftwareProfile::DataParallel& wrapper = profile->data_parallel;
    const bool each = profile == &before || profile == &flex;  // before pull request 574
    EXPECT_EQ(wrapper.shard_cut, ShardCut::kRows) << profile->name;
    EXPECT_EQ(wrapper.sync_each, each) << profile->name;
    EXPECT_EQ(wrapper.pipelines_sync_each, each) << profile->name;
    EXPECT_EQ(wrapper.reshard, each || profile == &dense) << profile->name;
    EXPECT_EQ(wrapper.stays(), profile == &benchmark) << profile->name;
  }
  EXPECT_TRUE(benchmark.experts.deals_tokens);
  EXPECT_FALSE(mixture.experts.deals_tokens);
  EXPECT_TRUE(mixture.update.grad_clip);
  EXPECT_FALSE(benchmark.update.grad_clip);
  EXPECT_EQ(flex.kernels.attention_kernel, "flex-attention");
  // Of megatron-core's, nothing of its weight gradients and its waits.
  EXPECT_EQ(mixture.calls.waits, (std::set<std::string>{"moe_gate", "moe_gate_normalized"}));
  EXPECT_TRUE(mixture.experts.dispatch_sends_once);
  EXPECT_EQ(mixture.experts.dispatch_sms, 20);
  EXPECT_THAT(
      ParseSoftwareProfile("name: 'a' like: 'megatron-core' dispatch_sms: 20", "a").status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("dispatch_sms is 20; it must be 0 to 1024, and 0 without")));
}

TEST(SoftwareProfileTest, StepsOfRingsAreThoseOfTheSource) {
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile eager, FindSoftwareProfile("torchtitan-eager"));
  ASSERT_OK_AND_ASSIGN(const SoftwareProfile compiled, FindSoftwareProfile("torchtitan-2024"));
  EXPECT_TRUE(compiled.kernels.context_steps.waits);
  EXPECT_FALSE(eager.kernels.context_steps.waits);
  EXPECT_TRUE(eager.kernels.context_steps.repeats_kv);
  EXPECT_EQ(eager.kernels.context_steps.merge_passes, 3);
  EXPECT_NE(eager.StructureKey(), compiled.StructureKey());
  EXPECT_THAT(
      ParseSoftwareProfile("like: \"ddp\" context_steps { merge_passes: 0 }", "mine.textproto"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::HasSubstr("mine.textproto: context_steps: merge_passes must be")));
}

}  // namespace
}  // namespace plancast
