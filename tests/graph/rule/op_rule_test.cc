#include "graph/rule/op_rule.h"

#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

OpRule Rule(const std::string& text) {
  absl::StatusOr<OpRule> rule = OpRule::Parse(text);
  EXPECT_TRUE(rule.ok()) << rule.status() << "\n" << text;
  return *std::move(rule);
}

TEST(OpRuleTest, IndicesAreMapsOfTheDimsFactor) {
  const OpRule written = Rule(
      "f(x, w) -> (y) {\n"
      "  let stride = 2, pad = 1, start = pad\n"
      "  y[b,i] += x[b,stride * i + k - pad] * w[k,start]\n}");
  EXPECT_EQ(written.DebugString(),
            "f(x, w) -> (y) {\n"
            "  factors b, i, k, x.1, w.1\n"
            "  y[b,i] += x[b,x.1] * w[k,w.1] where x.1 == 2 * i + k - 1 and w.1 == 1\n}");
  const Statement& s = written.statements()[0];
  EXPECT_EQ(s.factors, (std::vector<int>{0, 1, 3, 2, 4}));
  EXPECT_EQ(s.reduced, (std::vector<int>{2}));                   // x.1 and w.1 are fixed
  EXPECT_EQ(written.ties(), (std::vector<int>{0, 1, 2, 1, 4}));  // x.1 runs along i
  // A dim that has a factor keeps it.
  EXPECT_EQ(Rule("f(x) -> (y) { u[p] = x[p]\n y[i] = u[i + 1] }").DebugString(),
            "f(x) -> (y) {\n  factors p, i\n  u[p] = x[p]\n  y[i] = u[p] where p == i + 1\n}");
}

TEST(OpRuleTest, MapsHaveSizesAndConstants) {
  const std::string text =
      "f(x) -> (y) {\n  factors f, i, j, p\n"
      "  u[f,p] = x[i,j,p] where f == size(j) * i + j\n"
      "  y[f] += u[f,p] where p == -2 * f + 3 * size(i) * size(j) * i + size(j) - 7 and i < 3\n}";
  EXPECT_EQ(Rule(text).DebugString(), text);
  EXPECT_TRUE(Rule(text).statements()[0].where[0].is_radix());
  EXPECT_FALSE(Rule(text).statements()[1].where[0].is_radix());
}

TEST(OpRuleTest, RecurrencesSayHowTheyRun) {
  const OpRule rule = *OpRule::Parse(
      "r(a, u) -> (h, e) {\n"
      "  h[b,t] scan(t)= a[b,t] * previous + u[b,t]\n"
      "  e[b,t] scan(t, reverse, before)= previous - u[b,t]\n"
      "}");
  EXPECT_EQ(rule.statements()[0].combine, Combine::kScan);
  EXPECT_EQ(rule.statements()[0].scan.factor, 1);
  EXPECT_FALSE(rule.statements()[0].scan.reversed);
  EXPECT_TRUE(rule.statements()[1].scan.reversed);
  EXPECT_TRUE(rule.statements()[1].scan.before);
  EXPECT_EQ(OpRule::Parse(rule.DebugString())->DebugString(), rule.DebugString());
}

TEST(OpRuleTest, OpaqueStatementsKeepWhatTheyAreNotPointwiseIn) {
  const OpRule rule = *OpRule::Parse("r(x, param w) -> (y) { y[b,i] opaque(b)= x[b,j] * w[k] }");
  const std::vector<bool> expected = {true, false, false, false};  // b, i, j, k
  for (size_t f = 0; f < expected.size(); ++f) {
    EXPECT_EQ(rule.may_cut(static_cast<int>(f)), expected[f]) << rule.factors()[f];
  }
  EXPECT_EQ(OpRule::Parse(rule.DebugString())->DebugString(), rule.DebugString());
}

// The states at a border would have to be given to the neighbour as a halo.
TEST(OpRuleTest, RecurrencesAlongMappedFactorsStayWhole) {
  const OpRule rule =
      *OpRule::Parse("r(u) -> (y) { h[t] scan(t)= previous + u[t]; y[i] = h[t] where t == i + 1 }");
  EXPECT_FALSE(rule.may_cut(*rule.FindFactor("t")));
  EXPECT_FALSE(rule.may_cut(*rule.FindFactor("i")));
}

TEST(OpRuleTest, CallsBindAttributesAndRank) {
  const OpRule conv = **FindRule("conv1d(stride=2, pad=3)");
  EXPECT_EQ(conv.name(), "conv1d");
  EXPECT_THAT(conv.DebugString(), HasSubstr("where p == 2 * i + k - 3"));
  EXPECT_THAT((*FindRule("conv2d(stride=2)"))->DebugString(),
              HasSubstr("p == 2 * i + k and q == 2 * j + u"));  // stride_w follows
  EXPECT_EQ((*FindRule("global_avg_pool(rank=3)"))->DebugString(),
            "global_avg_pool(x) -> (y) {\n  factors b, c, _1, _2, _3\n"
            "  y[b,c] += x[b,c,_1,_2,_3] / (size(_1) * size(_2) * size(_3))\n}");
  EXPECT_THAT((*FindRule("channel_bias(rank=0)"))->DebugString(),
              HasSubstr("y[b,c] = x[b,c] + bias[c]"));
  // The tensors of a call say what `...` stands for.
  EXPECT_EQ((*FindRule("relu6", {4}))->factors().size(), 4u);
  EXPECT_EQ((*FindRule("channel_bias", {5, 1}))->factors().size(), 5u);
  EXPECT_EQ((*FindRule("relu6(rank=2)", {4}))->factors().size(), 2u);
  EXPECT_EQ(*FindRule("linear", {3, 2}), *FindRule("linear"));
  EXPECT_THAT(std::string(FindRule("channel_bias", {1, 1}).status().message()),
              HasSubstr("`rank` is -1"));
  auto error = [](const char* call) { return std::string(FindRule(call).status().message()); };
  EXPECT_THAT(error("conv1d(strid=2)"),
              HasSubstr("rule `conv1d` has no attribute `strid`; it has `stride`, `dilation`, "
                        "`pad`. Did you mean `stride`?"));
  EXPECT_THAT(error("linear(rank=2)"), HasSubstr("has no attribute `rank`; it has none."));
  EXPECT_THAT(error("conv1d(stride=a)"), HasSubstr("`stride=a` binds no whole number"));
  EXPECT_THAT(error("conv1d(stride=1"), HasSubstr("has no closing bracket"));
  EXPECT_THAT(error("channel_bias(rank=99)"), HasSubstr("`rank` is 99"));
}

TEST(OpRuleTest, RejectsIndicesThatAreNotAffine) {
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i,k] = x[i * k] }"),
              HasSubstr("here `i` is multiplied by `k`"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = x[2000000 * i] }"), HasSubstr("above a million"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = x[1.5 * i] }"), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = x[i] where i == 2 * i + 1 }"),
              HasSubstr("maps factor `i` to itself"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i,j] += x[p] where p == q + i and q == p + j }"),
              HasSubstr("to itself"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i,j] = x[p] where p == i and p == j }"),
              HasSubstr("maps factor `p` twice"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] = x[i + k] }"), HasSubstr("factor `k` is missing"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { let a = 1, a = 2\n y[i] = x[i] }"),
              HasSubstr("declared twice"));
}

TEST(OpRuleTest, PromisesAreAboutTheTableOfTheStatement) {
  const OpRule rule = Rule("f(x, at:i64) -> (d) { d[r] += x[s] * [s == at[r]] where r follows s }");
  EXPECT_THAT(rule.DebugString(), HasSubstr("[s == at[r]] where r follows s"));
  EXPECT_EQ(rule.ties()[*rule.FindFactor("r")], rule.ties()[*rule.FindFactor("s")]);
  for (const char* text :
       {"f(x) -> (d) { d[r] += x[s] where r follows s }",
        "f(x, at:i64) -> (d) { d[r] max= x[s] * [s == at[r]] where r follows s }",
        "f(x, at:i64) -> (d) { d[r] += x[s] * [s == at[r]] where s follows r }",
        "f(x, at:i64) -> (d) { d[r] += x[s] * relu([s == at[r]]) where r "
        "follows s }"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("is a promise about an index tensor")) << text;
  }
  for (const char* condition : {"r follows r", "r follows 2 * s", "r follows s + 1"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("f(x, at:i64) -> (d) { d[r] += x[s] * [s == at[r]] where ",
                                     condition, " }")),
                HasSubstr("`r` follows one other factor and nothing else"));
  }
}

TEST(OpRuleTest, RejectsRecurrencesThatCannotBeCut) {
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[t] scan(t)= tanh(previous) + x[t] }"),
              HasSubstr("is not linear in `previous`; write `a * previous + b`"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[b] scan(t)= previous + x[b,t] }"),
              HasSubstr("runs along factor `t`, which is missing on the left"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[t] scan(t)= previous + x[t,k] }"),
              HasSubstr("has all its factors on the left"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[t] scan(t, twice)= previous + x[t] }"),
              HasSubstr("expected `reverse` or `before` instead of `twice`"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] opaque(b)= x[b,i] }"),
              HasSubstr("one function for each `b`, which is missing on the left"));
  EXPECT_THAT(ErrorOf("f(x) -> (y) { y[i] opaque(i)= x[i] where i <= 3 }"),
              HasSubstr("an opaque statement has no conditions"));
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
