// Two rules as one.

#include "graph/rule/join_rules.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::string Joined(const char* first, const char* second, const RuleJoin& join) {
  const auto a = OpRule::Parse(first), b = OpRule::Parse(second);
  EXPECT_OK(a.status());
  EXPECT_OK(b.status());
  const auto rule = JoinRules(*a, *b, join);
  return rule.ok() ? rule->DebugString() : std::string(rule.status().message());
}

TEST(JoinRulesTest, AStencilOfAStencil) {
  const char* stage = "stage(x, t) -> (y) { y[i] += x[p] * t[k] where p == i + k - 1 }";
  EXPECT_EQ(Joined(stage, stage, {{{0, 0}}, {}}),
            "stage(x, t, t_1) -> (y_1) {\n"
            "  factors i, p, k, p_1, k_1\n"
            "  y[p] += x[p_1] * t[k_1] where p_1 == p + k_1 - 1\n"
            "  y_1[i] += y[p] * t_1[k] where p == i + k - 1\n"
            "}");
}

TEST(JoinRulesTest, WhatOthersReadStaysAResult) {
  const std::string rule = Joined("twice(x) -> (y) { y[i] = 2 * x[i] }",
                                  "next(a, b) -> (c) { c[j] = a[j] * b[j] }", {{{0, 1}}, {0}});
  EXPECT_THAT(rule, HasSubstr("next(x, a) -> (y, c)"));
}

TEST(JoinRulesTest, OneListOfDims) {
  EXPECT_THAT(Joined("twice(x) -> (y) { y[i] = 2 * x[i] }",
                     "outer(a, b) -> (c) { c[j,k] = a[j] * b[k] }", {{{0, 0}, {0, 1}}, {}}),
              HasSubstr("along `j` and along `k`"));
}

}  // namespace
}  // namespace plancast
