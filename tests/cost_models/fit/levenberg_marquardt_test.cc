#include "cost_models/fit/levenberg_marquardt.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plancast {
namespace {

using Span = absl::Span<const double>;
using MutableSpan = absl::Span<double>;

std::vector<double> Ones(size_t count) { return std::vector<double>(count, 1.0); }

// y = 3 x + 2 at x = 0 .. 19, with `outliers` of them far off.
Residuals Line(int outliers = 0) {
  return [outliers](Span p, MutableSpan r) {
    for (size_t i = 0; i < r.size(); ++i) {
      const double x = static_cast<double>(i);
      const double y = 3 * x + 2 + (static_cast<int>(i) % 5 == 1 && outliers > 0 ? 50 : 0);
      r[i] = p[0] * x + p[1] - y;
    }
  };
}

TEST(Minimise, FindsTheLineThroughPoints) {
  const FitResult found =
      Minimise(Line(), Ones(20), {{0, 10}, {-10, 10}}, {1.0, 0.0}, {.huber = 1.0});
  EXPECT_NEAR(found.parameters[0], 3, 1e-6);
  EXPECT_NEAR(found.parameters[1], 2, 1e-5);
  EXPECT_NEAR(found.loss, 0, 1e-9);
}

TEST(Minimise, FindsTheBottomOfRosenbrocksValley) {
  const Residuals valley = [](Span p, MutableSpan r) {
    r[0] = 1 - p[0];
    r[1] = 10 * (p[1] - p[0] * p[0]);
  };
  const FitResult found = Minimise(valley, Ones(2), {{-3, 3}, {-3, 3}}, {-1.2, 1.0},
                                   {.huber = 1e3, .most_iterations = 300, .tolerance = 1e-12});
  EXPECT_NEAR(found.parameters[0], 1, 1e-4);
  EXPECT_NEAR(found.parameters[1], 1, 1e-4);
}

// Least squares would give 10 more at every x; the robust loss stays with the many.
TEST(Minimise, ShrugsOffOutliers) {
  const FitResult found =
      Minimise(Line(4), Ones(20), {{0, 10}, {-100, 100}}, {1.0, 0.0}, {.huber = 0.05});
  EXPECT_NEAR(found.parameters[0], 3, 0.01);
  EXPECT_NEAR(found.parameters[1], 2, 0.1);
}

TEST(Minimise, WeighsObservations) {
  // One constant for 0 (weight 1) and 1 (weight 3): with squares the mean, 3/4.
  const Residuals constant = [](Span p, MutableSpan r) {
    r[0] = p[0];
    r[1] = p[0] - 1;
  };
  const FitResult found = Minimise(constant, {1.0, 3.0}, {{-5, 5}}, {0.0}, {.huber = 100});
  EXPECT_NEAR(found.parameters[0], 0.75, 1e-4);
}

TEST(Minimise, StaysWithinTheBounds) {
  const FitResult found =
      Minimise(Line(), Ones(20), {{0, 2}, {-10, 10}}, {1.0, 0.0}, {.huber = 1.0});
  EXPECT_LT(found.parameters[0], 2);
  EXPECT_NEAR(found.parameters[0], 2, 1e-3);
}

TEST(Minimise, TakesAStartBeyondTheBoundsInside) {
  const FitResult found =
      Minimise(Line(), Ones(20), {{0, 10}, {-10, 10}}, {99.0, -99.0}, {.huber = 1.0});
  EXPECT_NEAR(found.parameters[0], 3, 1e-3);
}

TEST(Minimise, GivesTheStartWhereNothingIsToBeFound) {
  const Residuals fixed = [](Span, MutableSpan r) { r[0] = 1; };
  const FitResult found = Minimise(fixed, Ones(1), {}, {}, {.huber = 2});
  EXPECT_TRUE(found.parameters.empty());
  EXPECT_DOUBLE_EQ(found.loss, 0.25);
  EXPECT_EQ(found.iterations, 0);
}

TEST(Minimise, IsDeterministic) {
  const auto fit = [] {
    return Minimise(Line(4), Ones(20), {{0, 10}, {-100, 100}}, {1.0, 0.0}).parameters;
  };
  EXPECT_EQ(fit(), fit());
}

// Bits, not figures: they are the same on every processor, however many rows are summed.
TEST(Minimise, GivesTheseBits) {
  const Residuals curve = [](Span p, MutableSpan r) {
    for (size_t i = 0; i < r.size(); ++i) {
      const double x = static_cast<double>(i) / 100;
      const double noise = static_cast<double>(i * 7919 % 1000) / 1000 - 0.5;
      r[i] = p[0] * x * x / (1 + p[1] * x) - 3 * x * x / (1 + 2 * x) + 0.2 * noise;
    }
  };
  const FitResult found =
      Minimise(curve, Ones(3000), {{0, 10}, {0, 10}}, {1.0, 1.0}, {.huber = 0.05});
  EXPECT_EQ(found.parameters[0], 0x1.7ffd7e5821822p+1);
  EXPECT_EQ(found.parameters[1], 0x1.fffbdf7c25b3ap+0);
}

}  // namespace
}  // namespace plancast
