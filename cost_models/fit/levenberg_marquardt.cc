#include "cost_models/fit/levenberg_marquardt.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "base/check.h"

namespace plancast {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// Steps of the numeric derivative, in units of the logistic map.
constexpr double kDifference = 1e-5;
// The map ends this close to the bounds.
constexpr double kNearest = 1e-6;
constexpr double kFarthest = 14;  // log((1 - kNearest) / kNearest)
constexpr double kLeastDamping = 1e-9, kMostDamping = 1e9;

class Problem {
 public:
  Problem(const Residuals& residuals, absl::Span<const double> weights,
          absl::Span<const Bounds> bounds, double huber)
      : residuals_(residuals), weights_(weights), bounds_(bounds), huber_(huber) {
    for (const double w : weights) total_weight_ += w;
  }

  VectorXd ToFree(absl::Span<const double> parameters) const {
    VectorXd free(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const double share =
          std::clamp((parameters[i] - bounds_[i].low) / (bounds_[i].high - bounds_[i].low),
                     kNearest, 1 - kNearest);
      free[static_cast<Eigen::Index>(i)] = std::log(share / (1 - share));
    }
    return free;
  }

  std::vector<double> FromFree(const VectorXd& free) const {
    std::vector<double> parameters(bounds_.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const double at = std::clamp(free[static_cast<Eigen::Index>(i)], -kFarthest, kFarthest);
      parameters[i] = bounds_[i].low + (bounds_[i].high - bounds_[i].low) / (1 + std::exp(-at));
    }
    return parameters;
  }

  VectorXd ResidualsAt(const VectorXd& free) const {
    VectorXd r(weights_.size());
    residuals_(FromFree(free), absl::MakeSpan(r.data(), weights_.size()));
    return r;
  }

  double Loss(const VectorXd& r) const {
    double sum = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const double size = std::abs(r[static_cast<Eigen::Index>(i)]);
      sum += weights_[i] * (size < huber_ ? size * size / (2 * huber_) : size - huber_ / 2);
    }
    return total_weight_ > 0 ? sum / total_weight_ : 0;
  }

  // Weights under which squares have the gradient of the loss.
  VectorXd SquareWeights(const VectorXd& r) const {
    VectorXd w(r.size());
    for (Eigen::Index i = 0; i < r.size(); ++i) {
      w[i] = weights_[static_cast<size_t>(i)] / std::max(std::abs(r[i]), huber_);
    }
    return w;
  }

  MatrixXd Jacobian(const VectorXd& free, const VectorXd& r) const {
    MatrixXd jacobian(r.size(), free.size());
    VectorXd moved = free;
    for (Eigen::Index p = 0; p < free.size(); ++p) {
      const double step = free[p] > 0 ? -kDifference : kDifference;  // away from the bound
      moved[p] = free[p] + step;
      jacobian.col(p) = (ResidualsAt(moved) - r) / step;
      moved[p] = free[p];
    }
    return jacobian;
  }

 private:
  const Residuals& residuals_;
  absl::Span<const double> weights_;
  absl::Span<const Bounds> bounds_;
  double huber_, total_weight_ = 0;
};

}  // namespace

FitResult Minimise(const Residuals& residuals, absl::Span<const double> weights,
                   absl::Span<const Bounds> bounds, absl::Span<const double> start,
                   const FitOptions& options) {
  PLANCAST_CHECK(start.size() == bounds.size());
  const Problem problem(residuals, weights, bounds, options.huber);
  VectorXd free = problem.ToFree(start);
  VectorXd r = problem.ResidualsAt(free);
  FitResult result;
  result.loss = problem.Loss(r);
  double damping = 1e-3;
  int small_steps = 0;
  while (result.iterations < options.most_iterations && small_steps < 2 && damping < kMostDamping &&
         !bounds.empty()) {
    ++result.iterations;
    const MatrixXd jacobian = problem.Jacobian(free, r);
    const VectorXd w = problem.SquareWeights(r);
    const MatrixXd normal = jacobian.transpose() * w.asDiagonal() * jacobian;
    const VectorXd gradient = jacobian.transpose() * w.cwiseProduct(r);
    // A parameter that hardly matters (at a bound) must not be thrown far.
    const double least = 1e-6 * normal.diagonal().maxCoeff() + 1e-300;
    bool improved = false;
    while (!improved && damping < kMostDamping) {
      MatrixXd damped = normal;
      damped.diagonal() += damping * normal.diagonal().cwiseMax(least);
      const VectorXd step = damped.ldlt().solve(gradient);
      const VectorXd next = (free - step).cwiseMax(-kFarthest).cwiseMin(kFarthest);
      const VectorXd next_r = problem.ResidualsAt(next);
      const double loss = problem.Loss(next_r);
      if (loss < result.loss) {
        small_steps = result.loss - loss < options.tolerance * result.loss ? small_steps + 1 : 0;
        free = next;
        r = next_r;
        result.loss = loss;
        damping = std::max(damping / 3, kLeastDamping);
        improved = true;
      } else {
        damping *= 4;
      }
    }
  }
  result.parameters = problem.FromFree(free);
  return result;
}

}  // namespace plancast
