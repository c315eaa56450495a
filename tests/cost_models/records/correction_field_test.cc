#include "cost_models/records/correction_field.h"

#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/seed.h"

namespace plancast {
namespace {

struct Cloud {
  std::vector<double> points, ratios;
};

// Shapes of two sizes within 2^4..2^14 at which the model is off by `wrong`.
template <typename Wrong>
Cloud Sampled(int count, uint64_t seed, double noise, Wrong wrong) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> size(4, 14);
  std::normal_distribution<double> error(0, noise);
  Cloud cloud;
  for (int i = 0; i < count; ++i) {
    const double x = size(random), y = size(random);
    cloud.points.insert(cloud.points.end(), {x, y});
    cloud.ratios.push_back(wrong(x, y) + (noise > 0 ? error(random) : 0));
  }
  return cloud;
}

double Smooth(double x, double y) { return 0.3 * std::sin(x / 2) - 0.05 * (y - 9); }

TEST(CorrectionFieldTest, WithoutRecordsThereIsNoCorrection) {
  const CorrectionField field = CorrectionField::Fit(2, {}, {});
  const CorrectionField::Answer answer = field.At({8, 8}, 0.2);
  EXPECT_EQ(answer.log_correction, 0);
  EXPECT_EQ(answer.support, 0);
  EXPECT_EQ(answer.sigma, 0.2);
}

TEST(CorrectionFieldTest, LearnsWhereAModelIsOff) {
  const Cloud cloud = Sampled(400, TestSeed(7), 0.02, Smooth);
  const CorrectionField field = CorrectionField::Fit(2, cloud.points, cloud.ratios);
  const Cloud fresh = Sampled(200, 8, 0, Smooth);
  double error = 0, before = 0;
  for (int i = 0; i < 200; ++i) {
    const auto answer = field.At({&fresh.points[2 * i], 2}, 0.3);
    error += std::abs(answer.log_correction - fresh.ratios[i]) / 200;
    before += std::abs(fresh.ratios[i]) / 200;
  }
  EXPECT_LT(error, 0.15 * before);
  EXPECT_LT(field.held_out_sigma(), 0.05);
  EXPECT_GT(field.held_out_sigma(), 0.015);  // no less than the noise, about
}

// What the field says of its own error is what it errs by on records that it never saw.
TEST(CorrectionFieldTest, SaysHowFarItIsOff) {
  for (double noise : {0.02, 0.1}) {
    const Cloud cloud = Sampled(300, TestSeed(9), noise, Smooth);
    const CorrectionField field = CorrectionField::Fit(2, cloud.points, cloud.ratios);
    const Cloud fresh = Sampled(400, 10, noise, Smooth);
    double squares = 0;
    for (int i = 0; i < 400; ++i) {
      const auto answer = field.At({&fresh.points[2 * i], 2}, 0.3);
      squares += std::pow((fresh.ratios[i] - answer.log_correction) / answer.sigma, 2) / 400;
    }
    EXPECT_GT(std::sqrt(squares), 0.6) << noise;
    EXPECT_LT(std::sqrt(squares), 1.6) << noise;
  }
}

TEST(CorrectionFieldTest, FarAwayItIsTheModelAlone) {
  const Cloud cloud = Sampled(200, TestSeed(11), 0.02, Smooth);
  const CorrectionField field = CorrectionField::Fit(2, cloud.points, cloud.ratios);
  const CorrectionField::Answer answer = field.At({60, 60}, 0.3);
  EXPECT_NEAR(answer.log_correction, 0, 1e-9);
  EXPECT_NEAR(answer.support, 0, 1e-9);
  EXPECT_NEAR(answer.sigma, 0.3, 1e-9);
}

TEST(CorrectionFieldTest, FadesWithoutAJumpAndStaysWithinWhatWasSeen) {
  const Cloud cloud = Sampled(200, TestSeed(12), 0.02, Smooth);
  const CorrectionField field = CorrectionField::Fit(2, cloud.points, cloud.ratios);
  const double seen = 0.3 + 0.05 * 5 + 0.1;
  double last = field.At({0, 8}, 0.3).log_correction, support = 1;
  for (double x = 0; x < 50; x += 0.01) {
    const CorrectionField::Answer answer = field.At({x, 8}, 0.3);
    EXPECT_LT(std::abs(answer.log_correction - last), 0.02) << x;
    EXPECT_LT(std::abs(answer.log_correction), 2 * seen) << x;
    if (x > 15) {
      EXPECT_LE(answer.support, support + 1e-12) << x;
    }
    last = answer.log_correction;
    support = answer.support;
  }
}

TEST(CorrectionFieldTest, NoiseAloneIsNotLearnt) {
  const Cloud cloud = Sampled(300, TestSeed(13), 0.1, [](double, double) { return 0.0; });
  const CorrectionField field = CorrectionField::Fit(2, cloud.points, cloud.ratios);
  double largest = 0;
  for (double x = 5; x < 13; x += 0.5) {
    largest = std::max(largest, std::abs(field.At({x, 9}, 0.3).log_correction));
  }
  EXPECT_LT(largest, 0.06);
}

TEST(CorrectionFieldTest, EqualRecordsGiveEqualDigits) {
  const Cloud cloud = Sampled(500, TestSeed(14), 0.05, Smooth);
  const CorrectionField a = CorrectionField::Fit(2, cloud.points, cloud.ratios);
  const CorrectionField b = CorrectionField::Fit(2, cloud.points, cloud.ratios);
  for (double x = 0; x < 20; x += 0.7) {
    EXPECT_EQ(a.At({x, 9}, 0.3).log_correction, b.At({x, 9}, 0.3).log_correction);
  }
}

}  // namespace
}  // namespace plancast
