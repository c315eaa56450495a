#include "graph/split/rule_part.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

OpRule Rule(const char* text) {
  absl::StatusOr<OpRule> rule = OpRule::Parse(text);
  EXPECT_OK(rule.status());
  return *std::move(rule);
}

constexpr char kTwo[] = R"(two(x, param w, param v, param bias) -> (y, z) {
  y[b,n] += x[b,k] * w[n,k]
  a[b,m] += x[b,k] * v[m,k]
  z[b,m] = a[b,m] + bias[m]
  save x, w, v
})";

TEST(RulePartTest, HasWhatItsOutputsNeed) {
  ASSERT_OK_AND_ASSIGN(const OpRule part, PartOf(Rule(kTwo), {1}));
  std::vector<std::string> inputs;
  for (int t : part.inputs()) inputs.push_back(part.tensors()[t].name);
  EXPECT_THAT(inputs, ElementsAre("x", "v", "bias"));
  ASSERT_EQ(part.outputs().size(), 1u);
  EXPECT_EQ(part.tensors()[part.outputs()[0]].name, "z");
  EXPECT_EQ(part.statements().size(), 2u);
  EXPECT_EQ(part.name(), "two.part");
  EXPECT_EQ(part.factors(), Rule(kTwo).factors());
}

TEST(RulePartTest, AnOutputThatAnotherNeedsIsInside) {
  const OpRule chain = Rule("chain(x) -> (y, z) {\n y[i] = exp(x[i])\n z[i] = y[i] * y[i]\n}");
  ASSERT_OK_AND_ASSIGN(const OpRule part, PartOf(chain, {1}));
  EXPECT_EQ(part.statements().size(), 2u);
  EXPECT_EQ(part.outputs().size(), 1u);
}

TEST(RulePartTest, PlainProductsHaveNoBiasAndOneWeightForAll) {
  EXPECT_THAT(PlainProducts(Rule(kTwo)), ElementsAre(0));
  EXPECT_THAT(PlainProducts(**FindRule("qkv_linear")), ElementsAre(0, 1, 2));
  EXPECT_THAT(PlainProducts(**FindRule("gated_linear")), ElementsAre(0, 1));
  EXPECT_THAT(PlainProducts(**FindRule("linear_bias")), IsEmpty());
  EXPECT_THAT(PlainProducts(**FindRule("expert_linear")), IsEmpty());
  EXPECT_THAT(PlainProducts(**FindRule("attention")), IsEmpty());
  EXPECT_THAT(PlainProducts(**FindRule("rms_norm")), IsEmpty());
}

}  // namespace
}  // namespace plancast
