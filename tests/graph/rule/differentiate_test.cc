#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"
#include "gtest/gtest.h"
#include "tests/graph/evaluator.h"
#include "tests/graph/random_rule.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpRule Rule(const std::string& text) {
  absl::StatusOr<OpRule> rule = OpRule::Parse(text);
  EXPECT_TRUE(rule.ok()) << rule.status();
  return *std::move(rule);
}

std::vector<std::string> Names(const OpRule& rule, const std::vector<int>& tensors) {
  std::vector<std::string> names;
  for (int t : tensors) names.push_back(rule.tensors()[t].name);
  return names;
}

// Sum over the outputs of c * output, in doubles, for a fixed random c.
class GradientCheck {
 public:
  GradientCheck(const OpRule& rule, uint64_t seed) : rule_(rule), random_(seed) {
    for (size_t f = 0; f < rule.factors().size(); ++f) extents_.push_back(2 + random_() % 2);
    for (int t : rule.inputs()) {
      Array<double> array = Array<double>::Empty(ShapeOf(rule.tensors()[t], extents_));
      const bool index = rule.tensors()[t].dtype == DType::kInt64;
      for (size_t e = 0; e < array.values.size(); ++e) {
        array.values[e] = index ? static_cast<double>(random_() % 3) : Draw();
        array.present[e] = true;
      }
      inputs_.push_back(std::move(array));
    }
    for (int t : rule.outputs()) {
      Array<double> weights = Array<double>::Empty(ShapeOf(rule.tensors()[t], extents_));
      for (size_t e = 0; e < weights.values.size(); ++e) {
        weights.values[e] = Draw();
        weights.present[e] = true;
      }
      weights_.push_back(std::move(weights));
    }
  }

  // The largest relative error of `backward`'s gradients against central
  // differences.
  double Error(const OpRule& backward, const std::vector<std::string>& wrt) {
    const std::vector<Array<double>> forward = EvaluateWhole(rule_, extents_, inputs_);
    std::vector<Array<double>> given;
    for (int t : backward.inputs()) {
      const std::string& name = backward.tensors()[t].name;
      for (size_t o = 0; o < rule_.outputs().size(); ++o) {
        if (name == "d_" + rule_.tensors()[rule_.outputs()[o]].name) given.push_back(weights_[o]);
      }
      if (absl::StatusOr<int> saved = rule_.FindTensor(name); saved.ok()) {
        given.push_back(forward[*saved]);
      }
    }
    EXPECT_EQ(given.size(), backward.inputs().size()) << backward.DebugString();
    const std::vector<Array<double>> gradients = EvaluateWhole(backward, extents_, given);
    double worst = 0;
    for (size_t w = 0; w < wrt.size(); ++w) {
      const Array<double>& gradient = gradients[backward.outputs()[w]];
      size_t input = 0;
      while (rule_.tensors()[rule_.inputs()[input]].name != wrt[w]) ++input;
      for (size_t e = 0; e < gradient.values.size(); ++e) {
        const double numeric = Difference(input, e, 1e-5);
        // Where a ten times smaller step gives something else, differences say
        // nothing (a cosine of a large sum).
        const double finer = Difference(input, e, 1e-6);
        const double scale = 1 + std::abs(numeric) + std::abs(Loss()) * 1e-4;
        if (std::abs(numeric - finer) / scale > 1e-6) continue;
        worst = std::max(worst, std::abs(numeric - gradient.values[e]) / scale);
      }
    }
    return worst;
  }

 private:
  double Difference(size_t input, size_t element, double h) {
    double& value = inputs_[input].values[element];
    const double at = value;
    value = at + h;
    const double above = Loss();
    value = at - h;
    const double below = Loss();
    value = at;
    return (above - below) / (2 * h);
  }
  double Draw() { return 0.3 + Numbers<double>::Random(random_()); }
  double Loss() {
    const std::vector<Array<double>> tensors = EvaluateWhole(rule_, extents_, inputs_);
    double loss = 0;
    for (size_t o = 0; o < rule_.outputs().size(); ++o) {
      const Array<double>& output = tensors[rule_.outputs()[o]];
      for (size_t e = 0; e < output.values.size(); ++e) {
        loss += output.values[e] * weights_[o].values[e];
      }
    }
    return loss;
  }

  const OpRule& rule_;
  std::mt19937_64 random_;
  std::vector<int64_t> extents_;
  std::vector<Array<double>> inputs_, weights_;
};

TEST(DifferentiateTest, ShippedOpsAgreeWithFiniteDifferences) {
  int checked = 0;
  for (const std::string& name : RuleNames()) {
    const OpRule& rule = **FindRule(name);
    const std::vector<std::string> inputs = DifferentiableInputs(rule);
    std::vector<std::vector<std::string>> choices = {inputs};
    for (const std::string& input : inputs) choices.push_back({input});
    for (const std::vector<std::string>& wrt : choices) {
      absl::StatusOr<OpRule> backward = Differentiate(rule, wrt);
      if (!backward.ok()) continue;
      EXPECT_LT(GradientCheck(rule, 17).Error(*backward, wrt), 1e-6)
          << rule.DebugString() << backward->DebugString();
      ++checked;
    }
  }
  EXPECT_GT(checked, 60);
}

TEST(DifferentiateTest, BoundOpsAgreeWithFiniteDifferences) {
  for (const char* call : {"conv1d(stride=2, pad=1)", "conv1d(dilation=2, pad=2)",
                           "conv2d(stride=2, pad=1)", "conv_transpose1d(stride=2, pad=1)",
                           "max_pool2d(stride=1, pad=1)", "avg_pool1d(stride=3, pad=1)",
                           "slice(start=1, step=2)", "pad(before=2)", "roll(shift=2)"}) {
    const OpRule rule = **FindRule(call);
    const std::vector<std::string> wrt = DifferentiableInputs(rule);
    absl::StatusOr<OpRule> backward = Differentiate(rule, wrt);
    ASSERT_TRUE(backward.ok()) << backward.status();
    EXPECT_LT(GradientCheck(rule, 17).Error(*backward, wrt), 1e-6) << backward->DebugString();
  }
}

// A maximum that leaves the op hands its gradient to the largest value; one that
// only shifts exponentials has none.
TEST(DifferentiateTest, MaximaThatAreOutputsHaveGradients) {
  EXPECT_THAT(Differentiate(**FindRule("max_pool1d"), {"x"})->DebugString(),
              HasSubstr("d_x[b,c,p] += d_y[b,c,i] * (1 - step(y[b,c,i] - x[b,c,p])) where"));
  EXPECT_THAT(Differentiate(**FindRule("softmax"), {"x"})->DebugString(),
              ::testing::Not(HasSubstr("step")));
}

TEST(DifferentiateTest, ConvolutionGivesItsTransposeAndAWeightGradient) {
  const OpRule conv = **FindRule("conv2d(stride=2, pad=1)");
  const std::string maps = " where p == 2 * i + k - 1 and q == 2 * j + u - 1";
  EXPECT_THAT(Differentiate(conv, {"x"})->DebugString(),
              HasSubstr("d_x[b,c,p,q] += d_y[b,n,i,j] * w[n,c,k,u]" + maps));
  EXPECT_THAT(Differentiate(conv, {"w"})->DebugString(),
              HasSubstr("d_w[n,c,k,u] += d_y[b,n,i,j] * x[b,c,p,q]" + maps));
}

TEST(DifferentiateTest, RandomOpsAgreeWithFiniteDifferences) {
  const uint64_t seed = TestSeed(4);
  RandomRules rules(seed, /*smooth=*/true);
  int checked = 0;
  for (int i = 0; i < 1000 && !HasFailure(); ++i) {
    const OpRule rule = rules.Next();
    const std::vector<std::string> wrt = DifferentiableInputs(rule);
    absl::StatusOr<OpRule> backward = Differentiate(rule, wrt);
    if (!backward.ok()) continue;  // multiplied by zero, or nothing depends on an input
    EXPECT_LT(GradientCheck(rule, seed + i).Error(*backward, wrt), 1e-4)
        << rule.DebugString() << "\n"
        << backward->DebugString();
    ++checked;
  }
  EXPECT_GT(checked, 500);
}

TEST(DifferentiateTest, GivesDgradAndWgradApart) {
  const OpRule& linear = **FindRule("linear");
  absl::StatusOr<OpRule> dgrad = Differentiate(linear, {"x"});
  ASSERT_TRUE(dgrad.ok());
  EXPECT_EQ(dgrad->name(), "linear.bwd.x");
  EXPECT_THAT(Names(*dgrad, dgrad->inputs()), ElementsAre("d_y", "w"));
  EXPECT_THAT(Names(*dgrad, dgrad->outputs()), ElementsAre("d_x"));
  absl::StatusOr<OpRule> wgrad = Differentiate(linear, {"w"});
  ASSERT_TRUE(wgrad.ok());
  EXPECT_THAT(Names(*wgrad, wgrad->inputs()), ElementsAre("d_y", "x"));
  EXPECT_EQ(wgrad->factors(), linear.factors());
  EXPECT_EQ(Differentiate(linear, {"w", "x"})->name(), "linear.bwd");
}

TEST(DifferentiateTest, AttentionBackwardIsFiveContractions) {
  const OpRule& rule = **FindRule("attention");
  absl::StatusOr<OpRule> backward = Differentiate(rule, {"q", "k", "v"});
  ASSERT_TRUE(backward.ok());
  EXPECT_EQ(backward->fused(), "attention");
  const std::vector<int64_t> extents(rule.factors().size(), 4);
  const OpWork forward = WorkOf(rule, extents, 0, static_cast<int>(rule.statements().size()));
  const OpWork work =
      WorkOf(*backward, extents, 0, static_cast<int>(backward->statements().size()));
  EXPECT_EQ(forward.contractions.size(), 2u);
  EXPECT_EQ(work.contractions.size(), 5u);
  EXPECT_THAT(Names(*backward, work.reads),
              ::testing::UnorderedElementsAre("d_o", "q", "k", "v", "o", "m", "z"));
}

TEST(DifferentiateTest, SoftmaxReadsOnlyItsResult) {
  absl::StatusOr<OpRule> backward = Differentiate(**FindRule("softmax"), {"x"});
  ASSERT_TRUE(backward.ok());
  EXPECT_THAT(Names(*backward, backward->inputs()), ElementsAre("d_y", "y", "z"));
}

TEST(DifferentiateTest, AddsUpSeveralUses) {
  const OpRule rule = Rule("f(x) -> (y) {\n y[i] = x[i] * x[i] + 3 * x[i]\n save x }");
  EXPECT_THAT(Differentiate(rule, {"x"})->DebugString(),
              HasSubstr("d_x[i] = 2 * (d_y[i] * x[i]) + d_y[i] * 3"));
}

TEST(DifferentiateTest, CountsPointsThatAShareDoesNotMention) {
  const OpRule rule = Rule("f(x, v) -> (y) {\n y[] += x[i] + v[j] }");
  EXPECT_THAT(Differentiate(rule, {"x"})->DebugString(), HasSubstr("d_x[i] = size(j) * d_y[]"));
}

TEST(DifferentiateTest, SaysWhatWouldHaveToBeSaved) {
  auto error = [](const std::string& text) {
    return std::string(Differentiate(Rule(text), {"x"}).status().message());
  };
  EXPECT_EQ(error("f(x) -> (y) { y[i] = x[i] * x[i] }"),
            "op `f`: the backward reads `x`, which is not saved. Add `x` to its save list.");
  EXPECT_THAT(error("f(x) -> (y) { u[i] = tanh(x[i])\n y[i] = u[i] * u[i] }"),
              HasSubstr("`u` is computed from `x`; saving `u` would do as well"));
  EXPECT_THAT(error("f(x) -> (y) { m[i]:u8 = step(random() - rate)\n y[i] = x[i] * m[i] }"),
              HasSubstr("`m`, which is random and cannot be computed again"));
  EXPECT_THAT(error("f(x) -> (y) { y[i] = step(x[i])\n save x }"),
              HasSubstr("no gradient of op `f` flows to its input `x`"));
}

TEST(DifferentiateTest, RejectsWhatHasNoGradient) {
  const OpRule& rule = **FindRule("embedding");
  EXPECT_THAT(std::string(Differentiate(rule, {"id"}).status().message()),
              HasSubstr("has no gradient by `id`; it is differentiable by `w`"));
  EXPECT_THAT(std::string(Differentiate(rule, {"ww"}).status().message()),
              HasSubstr("no tensor `ww`"));
  EXPECT_FALSE(Differentiate(rule, {}).ok());
  EXPECT_FALSE(Differentiate(rule, {"w", "w"}).ok());
  EXPECT_THAT(DifferentiableInputs(rule), ElementsAre("w"));
}

}  // namespace
}  // namespace plancast
