#include "graph/op_rule.h"

#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  return std::string(OpRule::Parse(text).status().message());
}

TEST(OpRuleTest, EveryShippedRuleRoundTrips) {
  EXPECT_GE(RuleNames().size(), 30u);
  for (const std::string& name : RuleNames()) {
    const OpRule& rule = **FindRule(name);
    EXPECT_EQ(rule.name(), name);
    absl::StatusOr<OpRule> again = OpRule::Parse(rule.DebugString());
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << rule.DebugString();
    EXPECT_EQ(again->DebugString(), rule.DebugString());
    for (size_t i = 0; i < rule.statements().size(); ++i) {
      EXPECT_EQ(again->statements()[i].value, rule.statements()[i].value) << rule.DebugString();
      EXPECT_EQ(again->statements()[i].reduced, rule.statements()[i].reduced);
    }
  }
}

TEST(OpRuleTest, KeepsStructureOfNestedExpressions) {
  const std::string text =
      "f(x) -> (y) {\n  factors i\n  y[i] = -(x[i] - (2 - x[i])) / (x[i] / -3) - -(2) * 1e-05\n}";
  absl::StatusOr<OpRule> rule = OpRule::Parse(text);
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->DebugString(), text);
}

TEST(OpRuleTest, ComputesBoxAndReducedFactors) {
  const OpRule& rule = **FindRule("linear");
  const Statement& s = rule.statements()[0];
  EXPECT_EQ(rule.factors(), (std::vector<std::string>{"b", "s", "n", "k"}));
  EXPECT_EQ(s.factors, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(s.reduced, (std::vector<int>{3}));
  EXPECT_TRUE(rule.tensors()[1].parameter);
}

TEST(OpRuleTest, ReadsTypesConditionsAndScalars) {
  absl::StatusOr<OpRule> rule = OpRule::Parse(
      "f(x, id:i64) -> (y:f32) {\n"
      "  y[s] += x[t] * [t == id[s]] * scale + [s == t] where t <= s + 2 and t == s - 1\n"
      "  save x; fused lookup }");
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->fused(), "lookup");
  EXPECT_EQ(rule->tensors()[1].dtype, DType::kInt64);
  EXPECT_EQ(rule->tensors()[2].dtype, DType::kFp32);
  const Statement& s = rule->statements()[0];
  ASSERT_EQ(s.where.size(), 2u);
  EXPECT_EQ(s.where[0].offset, 2);
  EXPECT_EQ(s.where[1].relation, Condition::Relation::kEqual);
  EXPECT_EQ(s.where[1].offset, -1);
}

TEST(OpRuleTest, ErrorsNamePlaceAndWord) {
  EXPECT_EQ(ErrorOf("f(x) -> (y) {\n  y[i] = z[i]\n}"),
            "line 2, column 10: no tensor `z` here; so far there are `x`, `y`. A tensor is written "
            "before it is read.");
  EXPECT_THAT(ErrorOf("f(x) -> (y) {\n  y[i] = x[i,j]\n}"),
              HasSubstr("`y[i] = x[i,j]` assigns, but factor `j` is missing on the left; write "
                        "`+=` or `max=`"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] += x[i] }"), HasSubstr("reduces nothing"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) {\n u[i] = x[i]\n y[j] = x[j] }"),
              HasSubstr("line 3, column 9: `x[j]` differs from the dims `x[i]`"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = sinus(x[i]) }"),
              HasSubstr("column 22: no function `sinus`; known: `exp`"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = x[i] ? 2 }"),
              HasSubstr("column 27: unexpected character `?`"));
  EXPECT_THAT(ErrorOf("f(x:f16) -> (y) { y[i] = x[i] }"), HasSubstr("no element type `f16`"));
  EXPECT_THAT(ErrorOf("f(x, x) -> (y) { y[i] = x[i] }"), HasSubstr("declared twice"));
  EXPECT_THAT(ErrorOf("f(x, w) -> (y) { y[i] = x[i] }"), HasSubstr("input `w` is never read"));
  EXPECT_THAT(ErrorOf("f(x) -> (y, z) { y[i] = x[i] }"), HasSubstr("output `z` is never written"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = x[i]\n y[i] = x[i] }"), HasSubstr("a second time"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { x[i] = 1\n y[i] = x[i] }"), HasSubstr("writes the input"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i,i] = x[i] }"), HasSubstr("on two dims"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = y[i] + x[i] }"), HasSubstr("before it is written"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] += x[i,j] where k <= i }"), HasSubstr("on neither side"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] += x[j] * [j == x[j]] * [i == j] }"),
              HasSubstr("no index tensor; declare it `x:i64`"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = x[i]"), HasSubstr("end of the text"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("expected one rule, the text has 0"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = " + std::string(100000, '(')), HasSubstr("too deeply"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = " + std::string(100000, '-')), HasSubstr("too deeply"));
  std::string sum = "f(x) -> (y) { y[i] = x[i]";
  for (int i = 0; i < 100000; ++i) sum += " + 1";
  EXPECT_THAT(ErrorOf(sum + "}"), HasSubstr("too long"));
}

// Mangled rules parse or answer; whatever parses prints what parses again.
TEST(OpRuleTest, SurvivesMangledText) {
  const uint64_t seed = TestSeed(1);
  std::mt19937_64 random(seed);
  const std::string letters = "()[]{},:+-*/=<;#\n .0123456789eabxyzmax where save param size";
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::vector<std::string> names = RuleNames();
    std::string text = (*FindRule(names[random() % names.size()]))->DebugString();
    for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = letters[random() % letters.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, letters[random() % letters.size()]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
      }
    }
    absl::StatusOr<OpRule> rule = OpRule::Parse(text);
    if (!rule.ok()) {
      EXPECT_FALSE(rule.status().message().empty());
      continue;
    }
    ++parsed;
    absl::StatusOr<OpRule> again = OpRule::Parse(rule->DebugString());
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << rule->DebugString();
    EXPECT_EQ(again->DebugString(), rule->DebugString());
    (void)Differentiate(*rule, DifferentiableInputs(*rule)).ok();
  }
  EXPECT_GT(parsed, 500);
}

TEST(OpRuleTest, LooksUpNames) {
  const OpRule& rule = **FindRule("linear");
  EXPECT_EQ(*rule.FindFactor("n"), 2);
  EXPECT_THAT(std::string(rule.FindFactor("kk").status().message()),
              HasSubstr("no factor `kk` in op `linear`; it has `b`, `s`, `n`, `k`."));
  EXPECT_EQ(*rule.FindTensor("w"), 1);
  EXPECT_THAT(std::string(FindRule("rmsnorm").status().message()),
              HasSubstr("Did you mean `rms_norm`?"));
}

}  // namespace
}  // namespace plancast
