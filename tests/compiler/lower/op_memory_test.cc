// What software holds for an op beside the tensors of its rule.

#include "compiler/lower/op_memory.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using OpMemory = SoftwareProfile::OpMemory;

constexpr int64_t kTokens = 512, kHidden = 1024, kFfn = 3072, kVocab = 2048;

PlanUnderTest Llama() {
  TransformerConfig config = SmallLlama();
  config.vocab = kVocab;
  PlanUnderTest plan = PlanUnderTest::Of(config);
  plan.MicroBatches(1, 1);
  return plan;
}

// Bytes that are alive after, and at most while, a block runs by itself.
struct Change {
  int64_t net = 0, most = 0;
};
Change ChangeOf(const ExecutionGraph& graph, const std::string& block) {
  Change change;
  for (const MemoryEvent& event : BlockNamed(graph, block).memory) {
    change.net += event.delta;
    change.most = std::max(change.most, change.net);
  }
  return change;
}

// Memory of a layer's passes with and without what `edit` says of `rule`. `weights`: where W is
// one.
struct Passes {
  Change forward, backward, weights;
};
template <typename Edit>
Passes Difference(const std::string& rule, Edit edit, Recompute recompute = Recompute::kNone,
                  bool splits = false) {
  PlanUnderTest plain = Llama(), changed = Llama();
  for (PlanUnderTest* plan : {&plain, &changed}) {
    plan->Recomputing(recompute);
    if (splits) plan->Pp(2, Schedule::kZbH1).MicroBatches(1, 4);
  }
  edit(&changed.profile().tensors.op_memory[rule]);
  const auto a = plain.Compile(), b = changed.Compile();
  EXPECT_TRUE(a.ok() && b.ok()) << b.status();
  if (!a.ok() || !b.ok()) return {};
  const auto minus = [&](const std::string& block) {
    const Change was = ChangeOf(*a, block), is = ChangeOf(*b, block);
    return Change{is.net - was.net, is.most - was.most};
  };
  return {minus("layer.F"), minus("layer.B"), splits ? minus("layer.W") : Change()};
}

TEST(OpMemoryTest, WhatIsKeptGoesWithTheBackwardPassOfItsOp) {
  const Passes kept = Difference("swiglu", [](OpMemory* m) {
    m->saved.push_back({"silu(gate)", "y"});
  });
  EXPECT_EQ(kept.forward.net, 2 * kTokens * kFfn);
  EXPECT_EQ(kept.backward.net, -2 * kTokens * kFfn);
}

template <typename Edit>
Passes DifferenceOfHalves(const std::string& rule, Edit edit,
                          Recompute recompute = Recompute::kNone) {
  return Difference(rule, edit, recompute, /*splits=*/true);
}

TEST(OpMemoryTest, GradientsMayLieWhereTheirInputsDid) {
  const auto over = [](OpMemory* m) { m->gradients_over_inputs = true; };
  const int64_t both = 2 * 2 * kTokens * kFfn;  // gate and up
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    const Passes passes = Difference("swiglu", over, recompute);
    EXPECT_EQ(passes.forward.net, 0);
    EXPECT_EQ(passes.backward.net, 0);
    EXPECT_LT(passes.backward.most, 0);
    EXPECT_GE(passes.backward.most, -both);
  }
  // With one of them gone, it is another op that needs the most.
  EXPECT_LE(Difference("swiglu", over, Recompute::kFull).backward.most, -both / 2);
  // Nothing is written over what others read: the norm's input goes on to the sum behind the layer.
  const Passes norm = Difference("rms_norm", over);
  EXPECT_EQ(norm.backward.net, 0);
  EXPECT_EQ(norm.forward.net, 0);
}

TEST(OpMemoryTest, WhatProductsKeepStaysForTheirWeightGradients) {
  const auto keeps = [](OpMemory* m) { m->saved.push_back({"copy", "y"}); };
  const int64_t bytes = 2 * kTokens * kHidden;
  const Passes down = DifferenceOfHalves("fc2", keeps);
  EXPECT_EQ(down.forward.net, bytes);
  EXPECT_EQ(down.backward.net, 0);
  EXPECT_EQ(down.weights.net, -bytes);
  // Without weights, or with their gradients beside those of inputs: as without W.
  const Passes activation = DifferenceOfHalves("swiglu", keeps);
  EXPECT_EQ(activation.forward.net, 2 * kTokens * kFfn);
  EXPECT_EQ(activation.backward.net, -2 * kTokens * kFfn);
  EXPECT_EQ(activation.weights.net, 0);
}

TEST(OpMemoryTest, WhatRunsAgainKeepsItFromBackwardToWeightGradients) {
  const Passes down = DifferenceOfHalves(
      "fc2",
      [](OpMemory* m) {
        m->saved.push_back({"copy", "x"});
      },
      Recompute::kFull);
  EXPECT_EQ(down.forward.net, 0);
  EXPECT_EQ(down.backward.net, -down.weights.net);
}

TEST(OpMemoryTest, AWorkspaceIsThereInOneOfTheHalves) {
  const Passes down = DifferenceOfHalves("fc2", [](OpMemory* m) {
    m->backward.push_back({"scratch", "x"});
  });
  EXPECT_EQ(down.backward.net, 0);
  EXPECT_EQ(down.weights.net, 0);
  EXPECT_EQ(down.weights.most, 0);
}

TEST(OpMemoryTest, ARecomputedOpKeepsItFromItsSecondPass) {
  const Passes kept = Difference(
      "swiglu",
      [](OpMemory* m) {
        m->saved.push_back({"silu(gate)", "y"});
      },
      Recompute::kFull);
  EXPECT_EQ(kept.forward.net, 0);
  EXPECT_EQ(kept.backward.net, 0);
  EXPECT_GT(kept.backward.most, 0);
}

TEST(OpMemoryTest, AnotherCopyTakesThePlaceOfWhatIsDropped) {
  // Two norms a layer: four bytes instead of two. The first one's input comes from the
  // module before, the second one's is the residual: both are read by the norms alone.
  const Passes kept = Difference("rms_norm", [](OpMemory* m) {
    m->not_saved = {"x"};
    m->saved.push_back({"x in fp32", "x", 4});
  });
  EXPECT_EQ(kept.forward.net, 2 * (4 - 2) * kTokens * kHidden);
  EXPECT_EQ(kept.backward.net, -2 * (4 - 2) * kTokens * kHidden);
}

TEST(OpMemoryTest, WorkspacesLiveAsLongAsTheirStep) {
  // The activation is at the peak of the forward pass, or near it.
  const Passes work = Difference("swiglu", [](OpMemory* m) {
    m->forward.push_back({"in fp32", "y", 4});
    m->backward.push_back({"in fp32", "y", 4});
  });
  EXPECT_EQ(work.forward.net, 0);
  EXPECT_EQ(work.backward.net, 0);
  EXPECT_GT(work.forward.most, 0);
  EXPECT_GT(work.backward.most, 0);
}

TEST(OpMemoryTest, WhatIsGivenUpEarlyIsNotThereWithTheResult) {
  // A loss in fp32: the gradient of its second operation is gone when the first one's is
  // cast, and takes no more than the cast does beside it.
  const auto most = [](bool early) {
    PlanUnderTest plan = Llama();
    auto& backward = plan.profile().tensors.op_memory["cross_entropy"].backward;
    backward.push_back({"second", "x", 4, "", false, early});
    backward.push_back({"first", "x", 4});
    const auto graph = plan.Compile();
    EXPECT_OK(graph.status());
    return graph.ok() ? ChangeOf(*graph, "head.B").most : 0;
  };
  EXPECT_EQ(most(false) - most(true), 2 * kTokens * kVocab);
}

TEST(OpMemoryTest, HeldInputsStayForTheBackwardPass) {
  const auto change = [](bool holds) {
    PlanUnderTest plan = Llama();
    if (holds) plan.profile().tensors.op_memory["cross_entropy"].pinned_inputs = {"x"};
    const auto graph = plan.Compile();
    EXPECT_OK(graph.status());
    return graph.ok() ? ChangeOf(*graph, "head.F").net : 0;
  };
  EXPECT_EQ(change(true) - change(false), 2 * kTokens * kVocab);
  PlanUnderTest plan = Llama();
  plan.profile().tensors.op_memory["cross_entropy"].pinned_inputs = {"x"};
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  EXPECT_EQ(ChangeOf(graph, "head.F").net + ChangeOf(graph, "layer.F").net * 8 +
                ChangeOf(graph, "embedding.F").net,
            -(ChangeOf(graph, "head.B").net + ChangeOf(graph, "layer.B").net * 8 +
              ChangeOf(graph, "embedding.B").net));
}

TEST(OpMemoryTest, AGradientThatForwardWritesLiesInItsInput) {
  // The rule keeps exponentials in fp32; here the logits' own memory holds their gradient.
  for (const int64_t tp : {1, 4}) {
    const auto change = [tp](bool over, const char* block) {
      PlanUnderTest plan = Llama();
      plan.Tp(tp);
      if (over) {
        plan.profile().tensors.op_memory["cross_entropy"].saved.push_back(
            {"gradient", "x", 0, "", /*shared=*/true});
      }
      const auto graph = plan.Compile();
      EXPECT_OK(graph.status());
      return graph.ok() ? ChangeOf(*graph, block) : Change();
    };
    const int64_t logits = kTokens * kVocab / tp;
    EXPECT_EQ(change(false, "head.F").net - change(true, "head.F").net, (4 - 2) * logits);
    EXPECT_EQ(change(false, "head.F").most - change(true, "head.F").most, 4 * logits);
    EXPECT_EQ(change(true, "head.B").net - change(false, "head.B").net, (4 - 2) * logits);
    // Nothing comes beside it but the gradient of what the product read, and figures of tokens.
    EXPECT_NEAR(static_cast<double>(change(false, "head.B").most - change(true, "head.B").most),
                static_cast<double>(2 * logits - 2 * kTokens * kHidden), 16 * kTokens);
  }
}

TEST(OpMemoryTest, WhatIsKeptOfAGatherIsThereWithTensorParallelismAlone) {
  const auto net = [](int64_t tp, bool keeps) {
    PlanUnderTest plan = Llama();
    plan.Tp(tp);
    plan.profile().kernels.whole_rules = {"cross_entropy"};
    if (keeps) {
      plan.profile().tensors.op_memory["cross_entropy"].saved.push_back(
          {"list", "x", 0, "", false, false, true});
    }
    const auto graph = plan.Compile();
    EXPECT_OK(graph.status());
    return graph.ok() ? ChangeOf(*graph, "head.F").net : 0;
  };
  EXPECT_EQ(net(1, true), net(1, false));
  EXPECT_EQ(net(4, true) - net(4, false), 2 * kTokens * kVocab);
}

TEST(OpMemoryTest, WhatACutDimNeedsIsThereWhereItIsCut) {
  for (const int64_t tp : {1, 2}) {
    PlanUnderTest plain = Llama(), changed = Llama();
    for (PlanUnderTest* plan : {&plain, &changed}) plan->Tp(tp);
    ExtraTensor part{"exp", "x"};
    part.cut = "vocab";
    changed.profile().tensors.op_memory["cross_entropy"].saved.push_back(part);
    const int64_t more =
        ChangeOf(*changed.Compile(), "head.F").net - ChangeOf(*plain.Compile(), "head.F").net;
    EXPECT_EQ(more, tp == 1 ? 0 : 2 * kTokens * kVocab / tp);
  }
}

TEST(OpMemoryTest, TablesAreLookedUpForEachSample) {
  const auto kept = [](int64_t samples) {
    PlanUnderTest plain = Llama(), changed = Llama();
    plain.MicroBatches(samples, 1);
    changed.MicroBatches(samples, 1);
    changed.profile().tensors.op_memory["rotary"].saved.push_back(
        {"cos", "cos_table", 2, "", false, false, false, {"batch"}});
    const auto a = plain.Compile(), b = changed.Compile();
    EXPECT_TRUE(a.ok() && b.ok()) << b.status();
    return a.ok() && b.ok() ? ChangeOf(*b, "layer.F").net - ChangeOf(*a, "layer.F").net : 0;
  };
  constexpr int64_t kHead = kHidden / 16;
  EXPECT_EQ(kept(1), 2 * kTokens * kHead);
  EXPECT_EQ(kept(3), 3 * 2 * kTokens * kHead);
}

TEST(OpMemoryTest, ATransposeOfOneSampleIsAView) {
  const auto edit = [](OpMemory* m) { m->saved.push_back({"o by sample", "o", 0, "batch"}); };
  EXPECT_EQ(Difference("attention", edit).forward.net, 0);
  PlanUnderTest plain = Llama(), changed = Llama();
  plain.MicroBatches(2, 1);
  changed.MicroBatches(2, 1);
  edit(&changed.profile().tensors.op_memory["attention"]);
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph a, plain.Compile());
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph b, changed.Compile());
  EXPECT_EQ(ChangeOf(b, "layer.F").net - ChangeOf(a, "layer.F").net, 2 * 2 * kTokens * kHidden);
}

TEST(OpMemoryTest, HeldResultsAreThereThroughoutOnTheStageOfTheirOp) {
  PlanUnderTest plan = Llama();
  plan.Pp(2).MicroBatches(1, 4);
  plan.profile().tensors.op_memory["cross_entropy"].persistent.push_back({"logits", "x"});
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  const auto held = [&](int stage) {
    return graph.programs[stage].static_bytes[static_cast<int>(MemoryKind::kWorkspace)];
  };
  EXPECT_EQ(held(0), 0);
  EXPECT_EQ(held(1), 2 * kTokens * kVocab);
}

TEST(OpMemoryTest, WholeRulesReadWhatIsGatheredOverTp) {
  PlanUnderTest plan = Llama();
  plan.Tp(4);
  plan.profile().kernels.whole_rules = {"cross_entropy"};
  const Moves moves = plan.Traffic();
  EXPECT_NE(
      std::find(moves.forward.begin(), moves.forward.end(), AllGather("tp", 2 * kTokens * kVocab)),
      moves.forward.end());
}

TEST(OpMemoryTest, TensorsHaveNames) {
  PlanUnderTest plan = Llama();
  plan.profile().tensors.op_memory["swiglu"].saved.push_back({"silu(gate)", "y"});
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, plan.Compile());
  const std::vector<std::string>& names = BlockNamed(graph, "layer.F").tensors;
  EXPECT_NE(std::find(names.begin(), names.end(), "layers.*.mlp.act/silu(gate)"), names.end());
}

}  // namespace
}  // namespace plancast
