// What of a model is trained, and the adapters beside its products.

#include "compiler/finetune/fine_tune.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/finetune/adapter.h"
#include "gmock/gmock.h"
#include "graph/rule/op_rule.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ModelGraph> Tuned(PlanUnderTest& plan) {
  return FineTuned(plan.graph(), plan.tree());
}

std::string WhyNot(PlanUnderTest& plan) { return std::string(Tuned(plan).status().message()); }

// `layers 1+7` and so on: repeats of the pieces of each path.
std::vector<std::string> Pieces(const ModelGraph& graph) {
  std::vector<std::string> pieces;
  std::string last;
  for (const Segment& segment : graph.segments) {
    if (segment.path == last) {
      absl::StrAppend(&pieces.back(), "+", segment.repeat);
    } else {
      pieces.push_back(absl::StrCat(segment.path, " ", segment.repeat));
    }
    last = segment.path;
  }
  return pieces;
}

TEST(AdapterTest, OfALinearAreTwoProductsAndASum) {
  ASSERT_OK_AND_ASSIGN(const OpRulePtr rule, FindRule("linear"));
  ASSERT_OK_AND_ASSIGN(const AdapterRules rules, AdapterOf(*rule));
  EXPECT_THAT(rules.a->DebugString(), HasSubstr("a[b,s,rank] += x[b,s,k] * w[rank,k]"));
  EXPECT_THAT(rules.b->DebugString(), HasSubstr("y[b,s,n] += a[b,s,rank] * w_y[n,rank]"));
  EXPECT_THAT(rules.add->DebugString(),
              HasSubstr("sum_y[b,s,n] = base_y[b,s,n] + scale * y[b,s,n]"));
}

TEST(AdapterTest, OfQueryKeyAndValueTheFirstProductIsOne) {
  ASSERT_OK_AND_ASSIGN(const OpRulePtr rule, FindRule("qkv_linear_bias"));
  ASSERT_OK_AND_ASSIGN(const AdapterRules rules, AdapterOf(*rule));
  EXPECT_THAT(rules.a->DebugString(), HasSubstr("a[b,s,rank] += x[b,s,h] * w[rank,h]"));
  EXPECT_THAT(rules.b->DebugString(), HasSubstr("q[b,s,g,r,d] += a[b,s,rank] * w_q[g,r,d,rank]"));
  EXPECT_THAT(rules.b->DebugString(), HasSubstr("v[b,s,g,e] += a[b,s,rank] * w_v[g,e,rank]"));
}

TEST(AdapterTest, SumsOverSeveralDimsAndExpertsHaveTheirOwn) {
  ASSERT_OK_AND_ASSIGN(const OpRulePtr out, FindRule("out_linear"));
  ASSERT_OK_AND_ASSIGN(const AdapterRules rules, AdapterOf(*out));
  EXPECT_THAT(rules.a->DebugString(), HasSubstr("a[b,s,rank] += x[b,s,g,r,e] * w[rank,g,r,e]"));
  ASSERT_OK_AND_ASSIGN(const OpRulePtr expert, FindRule("expert_gated_linear"));
  ASSERT_OK_AND_ASSIGN(const AdapterRules each, AdapterOf(*expert));
  EXPECT_THAT(each.a->DebugString(), HasSubstr("a[b,e,r,rank] += x[b,e,r,h] * w[e,rank,h]"));
  EXPECT_THAT(each.b->DebugString(), HasSubstr("up[b,e,r,f] += a[b,e,r,rank] * w_up[e,f,rank]"));
}

TEST(AdapterTest, InputsMayHaveAnyNumberOfDims) {
  ASSERT_OK_AND_ASSIGN(const OpRulePtr rule, FindRule("linear_bias_nd(rank=3)"));
  ASSERT_OK_AND_ASSIGN(const AdapterRules rules, AdapterOf(*rule));
  EXPECT_EQ(rules.a->tensors()[rules.a->inputs()[0]].factors.size(), 4u);
  EXPECT_EQ(rules.b->tensors()[rules.b->outputs()[0]].factors.size(), 4u);
}

TEST(AdapterTest, OnlyProductsWithWeightsHaveThem) {
  for (const char* name : {"conv2d", "rms_norm", "matmul", "embedding", "attention"}) {
    ASSERT_OK_AND_ASSIGN(const OpRulePtr rule, FindRule(name));
    EXPECT_THAT(std::string(AdapterOf(*rule).status().message()), HasSubstr("has no adapters"))
        << name;
  }
}

// rank * (in + out) for each product, fused ones having one input side.
TEST(FineTuneTest, TrainedParametersAreThoseOfTheAdapters) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.Lora("", 16, {"qkv", "proj", "fc1", "fc2"});
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Tuned(plan));
  const int64_t hidden = 1024, ffn = 3072;
  const int64_t layer =
      (hidden + 3 * hidden) + (hidden + hidden) + (hidden + 2 * ffn) + (ffn + hidden);
  EXPECT_EQ(graph.TrainedParameterCount(), 8 * 16 * layer);
  EXPECT_EQ(graph.ParameterCount(), plan.graph().ParameterCount() + 8 * 16 * layer);
  EXPECT_OK(graph.Verify());
}

TEST(FineTuneTest, TheFirstLayerIsOneOfItsOwnWhereNothingBeforeItIsTrained) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallLlama());
  plan.Lora("", 16, {"qkv"});
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Tuned(plan));
  EXPECT_THAT(Pieces(graph), ElementsAre("embedding 1", "layers 1+7", "head 1"));
}

TEST(FineTuneTest, LayersAreCutWhereWhatIsTrainedBegins) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Train("embedding", false).Train("layers[0:5]", false);
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Tuned(plan));
  // Five without gradients, one that gives none, two that do.
  EXPECT_THAT(Pieces(graph), ElementsAre("embedding 1", "layers 5+1+2", "head 1"));
  EXPECT_OK(graph.Verify());
}

TEST(FineTuneTest, ANodeMayBeTrainedBesideAdapters) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Lora("layers.*", 4, {"proj"}).Train("layers.*.attn.norm", true);
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Tuned(plan));
  EXPECT_EQ(graph.TrainedParameterCount(), 8 * (4 * 2 * 1024 + 2 * 1024));
}

TEST(FineTuneTest, HalfAnAdapterMayBeFrozen) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Lora("", 4, {"proj"}).Train("layers.*.attn.proj.lora_a", false);
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Tuned(plan));
  EXPECT_EQ(graph.TrainedParameterCount(), 8 * 4 * 1024);
}

TEST(FineTuneTest, RanksMayDiffer) {
  PlanUnderTest plan = PlanUnderTest::Of(SmallGpt());
  plan.Lora("layers[0:4]", 4, {"proj"}).Lora("layers[4:8]", 8, {"proj"});
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Tuned(plan));
  EXPECT_EQ(graph.TrainedParameterCount(), (4 * 4 + 4 * 8) * 2 * 1024);
}

TEST(FineTuneTest, WhatIsWrongIsSaid) {
  const auto with = [](auto say) {
    TransformerConfig config = SmallGpt();
    config.tied_embeddings = true;
    PlanUnderTest plan = PlanUnderTest::Of(config);
    say(plan);
    return WhyNot(plan);
  };
  EXPECT_THAT(with([](PlanUnderTest& p) { p.Lora("", 4, {"q_proj"}); }),
              HasSubstr("names no op with `q_proj`; adapters can stand beside `attn.proj`"));
  EXPECT_THAT(with([](PlanUnderTest& p) { p.Lora("layers.*.attn", 4, {"fc1"}); }),
              HasSubstr("can stand beside `attn.proj`, `attn.qkv`."));
  EXPECT_THAT(with([](PlanUnderTest& p) { p.Lora("embedding.tokens", 4, {"fc1"}); }),
              HasSubstr("`lora` of `embedding.tokens` has no effect"));
  EXPECT_THAT(with([](PlanUnderTest& p) {
                p.Lora("layers.*.attn.qkv", 4, {"qkv"}).Lora("layers.*.attn.proj", 4, {"proj"});
                p.Lora("layers.*.attn", 8, {"qkv"});
              }),
              HasSubstr("`lora` of `layers.*.attn` has no effect"));
  EXPECT_THAT(with([](PlanUnderTest& p) { p.Lora("", 4, {"core"}); }),
              HasSubstr("is no product of one activation with weights"));
  EXPECT_THAT(with([](PlanUnderTest& p) { p.Train("", false); }),
              HasSubstr("nothing of the model is trained"));
  EXPECT_THAT(with([](PlanUnderTest& p) { p.Train("embedding", false); }),
              HasSubstr("are one parameter, and one of them is trained"));
}

}  // namespace
}  // namespace plancast
