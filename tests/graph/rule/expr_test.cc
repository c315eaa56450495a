#include "graph/rule/expr.h"

#include <string>

#include "graph/rule/derivative.h"
#include "graph/rule/linearity.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

const Expr kX = Expr::Element(0), kY = Expr::Element(1);

std::string Text(const Expr& e) {
  return ExprToString(e, {[](int t) { return t == 0 ? "x[i]" : "y[i]"; },
                          [](int f) { return std::string(1, "ij"[f]); }});
}

std::string Derivative(const Expr& e, std::optional<Expr> known = std::nullopt) {
  Expr sum;
  BackPropagate(e, Expr::Number(1), known, {true, false},
                [&](int, const Expr& share) { sum = Add(sum, share); });
  return Text(sum);
}

TEST(ExprTest, SimplifiesNeutralElements) {
  const Expr zero = Expr::Number(0), one = Expr::Number(1);
  EXPECT_EQ(Add(zero, kX), kX);
  EXPECT_EQ(Add(kX, zero), kX);
  EXPECT_EQ(Multiply(one, kX), kX);
  EXPECT_TRUE(Multiply(kX, zero).is_number(0));
  EXPECT_EQ(Divide(kX, one), kX);
  EXPECT_TRUE(Divide(zero, kX).is_number(0));
  EXPECT_EQ(Minus(Minus(kX)), kX);
  EXPECT_EQ(Subtract(zero, kX), Minus(kX));
  EXPECT_EQ(Add(kX, Minus(kY)), Subtract(kX, kY));
  EXPECT_TRUE(Multiply(Expr::Number(3), Expr::Number(-2)).is_number(-6));
  EXPECT_EQ(Text(Multiply(Minus(kX), kY)), "-(x[i] * y[i])");
}

TEST(ExprTest, EqualityIsStructural) {
  EXPECT_EQ(Multiply(kX, kY), Expr::Binary(ExprKind::kProduct, Expr::Element(0), Expr::Element(1)));
  EXPECT_NE(Multiply(kX, kY), Multiply(kY, kX));
  EXPECT_NE(Expr::Attribute("a"), Expr::Attribute("b"));
}

TEST(ExprTest, NumbersPrintAtFullPrecision) {
  EXPECT_EQ(Text(Expr::Number(0.1)), "0.1");
  EXPECT_EQ(Text(Expr::Number(1.1283791670955126)), "1.1283791670955126");
  EXPECT_EQ(Text(Expr::Number(1.0 / 3)), "0.3333333333333333");
}

TEST(DerivativeTest, KnowsEveryFunction) {
  auto of = [](Function f) { return Derivative(Expr::Apply(f, kX)); };
  EXPECT_EQ(of(Function::kExp), "exp(x[i])");
  EXPECT_EQ(of(Function::kLog), "1 / x[i]");
  EXPECT_EQ(of(Function::kSqrt), "0.5 / sqrt(x[i])");
  EXPECT_EQ(of(Function::kSin), "cos(x[i])");
  EXPECT_EQ(of(Function::kCos), "-sin(x[i])");
  EXPECT_EQ(of(Function::kStep), "0");
  EXPECT_EQ(Derivative(Expr::Apply(Function::kTanh, kX), kY), "1 - y[i] * y[i]");
  EXPECT_EQ(Derivative(Expr::Apply(Function::kRelu, kX), kY), "step(y[i])");
}

TEST(DerivativeTest, FollowsProductsAndQuotients) {
  EXPECT_EQ(Derivative(Multiply(kX, kY)), "y[i]");
  EXPECT_EQ(Derivative(Divide(kY, kX)), "-(y[i] / x[i] / x[i])");
  EXPECT_EQ(Derivative(Subtract(kY, kX)), "-1");
}

TEST(LinearityTest, TellsHowAnExpressionDependsOnMarkedTensors) {
  const std::vector<bool> x = {true, false};
  EXPECT_EQ(DependenceOn(Multiply(kX, kY), x), Dependence::kLinear);
  EXPECT_EQ(DependenceOn(Divide(kX, kY), x), Dependence::kLinear);
  EXPECT_EQ(DependenceOn(Divide(kY, kX), x), Dependence::kOther);
  EXPECT_EQ(DependenceOn(Add(kX, kY), x), Dependence::kOther);
  EXPECT_EQ(DependenceOn(Add(kX, Multiply(kX, kY)), x), Dependence::kLinear);
  EXPECT_EQ(DependenceOn(Multiply(kX, kX), x), Dependence::kOther);
  EXPECT_EQ(DependenceOn(Expr::Apply(Function::kExp, kX), x), Dependence::kOther);
  EXPECT_EQ(DependenceOn(kY, x), Dependence::kNone);
}

}  // namespace
}  // namespace plancast
