#include "graph/rule/recurrence.h"

#include <gtest/gtest.h>

namespace plancast {
namespace {

TEST(RecurrenceTest, TakesLinearStepsApart) {
  const Expr a = Expr::Element(0), u = Expr::Element(1), previous = Expr::Previous();
  const auto step = AsRecurrence(Add(Multiply(a, previous), u));
  ASSERT_TRUE(step.has_value());
  EXPECT_TRUE(step->decay == a);
  EXPECT_TRUE(step->input == u);
  // a (previous + u) - previous / 2
  const auto other =
      AsRecurrence(Subtract(Multiply(a, Add(previous, u)), Divide(previous, Expr::Number(2))));
  ASSERT_TRUE(other.has_value());
  EXPECT_TRUE(other->decay == Subtract(a, Divide(Expr::Number(1), Expr::Number(2))));
  EXPECT_TRUE(other->input == Multiply(a, u));
}

TEST(RecurrenceTest, RefusesWhatDoesNotCombine) {
  const Expr a = Expr::Element(0), previous = Expr::Previous();
  EXPECT_FALSE(AsRecurrence(Multiply(previous, previous)).has_value());
  EXPECT_FALSE(AsRecurrence(Expr::Apply(Function::kTanh, previous)).has_value());
  EXPECT_FALSE(AsRecurrence(Divide(a, previous)).has_value());
}

TEST(RecurrenceTest, PutsAStateInItsPlace) {
  const Expr a = Expr::Element(0), h = Expr::Element(2);
  EXPECT_TRUE(ReplacePrevious(Add(Multiply(a, Expr::Previous()), a), h) == Add(Multiply(a, h), a));
}

}  // namespace
}  // namespace plancast
