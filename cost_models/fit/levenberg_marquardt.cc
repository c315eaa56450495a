#include "cost_models/fit/levenberg_marquardt.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "cost_models/fit/portable_math.h"

namespace plancast {
namespace {

// Sums go in the order of the rows: libraries of matrices cut theirs by the caches and the vector
// width of the processor.
using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // of columns

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

  Vector ToFree(absl::Span<const double> parameters) const {
    Vector free;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const double share =
          std::clamp((parameters[i] - bounds_[i].low) / (bounds_[i].high - bounds_[i].low),
                     kNearest, 1 - kNearest);
      free.push_back(PortableLog(share / (1 - share)));
    }
    return free;
  }

  Vector FromFree(const Vector& free) const {
    Vector parameters(bounds_.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const double at = std::clamp(free[i], -kFarthest, kFarthest);
      parameters[i] = bounds_[i].low + (bounds_[i].high - bounds_[i].low) / (1 + PortableExp(-at));
    }
    return parameters;
  }

  Vector ResidualsAt(const Vector& free) const {
    Vector r(weights_.size());
    residuals_(FromFree(free), absl::MakeSpan(r));
    return r;
  }

  double Loss(const Vector& r) const {
    double sum = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const double size = std::abs(r[i]);
      sum += weights_[i] * (size < huber_ ? size * size / (2 * huber_) : size - huber_ / 2);
    }
    return total_weight_ > 0 ? sum / total_weight_ : 0;
  }

  // Weights under which squares have the gradient of the loss.
  Vector SquareWeights(const Vector& r) const {
    Vector w(r.size());
    for (size_t i = 0; i < r.size(); ++i) w[i] = weights_[i] / std::max(std::abs(r[i]), huber_);
    return w;
  }

  Matrix Jacobian(const Vector& free, const Vector& r) const {
    Matrix jacobian;
    Vector moved = free;
    for (size_t p = 0; p < free.size(); ++p) {
      const double step = free[p] > 0 ? -kDifference : kDifference;  // away from the bound
      moved[p] = free[p] + step;
      Vector column = ResidualsAt(moved);
      for (size_t i = 0; i < r.size(); ++i) column[i] = (column[i] - r[i]) / step;
      jacobian.push_back(std::move(column));
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

double WeightedDot(const Vector& a, const Vector& weights, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * weights[i] * b[i];
  return sum;
}

// x of A x = b by elimination; A is symmetric and has no negative eigenvalue, so that pivots need
// no search. Entries of x that no row tells about are 0.
Vector Solve(Matrix a, Vector b) {
  const size_t count = b.size();
  for (size_t j = 0; j < count; ++j) {
    for (size_t i = j + 1; i < count; ++i) {
      const double factor = a[j][j] > 0 ? a[j][i] / a[j][j] : 0;
      for (size_t k = i; k < count; ++k) a[i][k] -= factor * a[j][k];
      b[i] -= factor * b[j];
    }
  }
  for (size_t j = count; j-- > 0;) {
    for (size_t k = j + 1; k < count; ++k) b[j] -= a[j][k] * b[k];
    b[j] = a[j][j] > 0 ? b[j] / a[j][j] : 0;
  }
  return b;
}

}  // namespace

FitResult Minimise(const Residuals& residuals, absl::Span<const double> weights,
                   absl::Span<const Bounds> bounds, absl::Span<const double> start,
                   const FitOptions& options) {
  PLANCAST_CHECK(start.size() == bounds.size());
  const Problem problem(residuals, weights, bounds, options.huber);
  Vector free = problem.ToFree(start);
  Vector r = problem.ResidualsAt(free);
  FitResult result;
  result.loss = problem.Loss(r);
  double damping = 1e-3;
  int small_steps = 0;
  while (result.iterations < options.most_iterations && small_steps < 2 && damping < kMostDamping &&
         !bounds.empty()) {
    ++result.iterations;
    const Matrix jacobian = problem.Jacobian(free, r);
    const Vector w = problem.SquareWeights(r);
    Matrix normal(free.size(), Vector(free.size()));
    Vector gradient(free.size());
    double largest = 0;
    for (size_t p = 0; p < free.size(); ++p) {
      for (size_t q = 0; q <= p; ++q) {
        normal[p][q] = normal[q][p] = WeightedDot(jacobian[p], w, jacobian[q]);
      }
      gradient[p] = WeightedDot(jacobian[p], w, r);
      largest = std::max(largest, normal[p][p]);
    }
    // A parameter that hardly matters (at a bound) must not be thrown far.
    const double least = 1e-6 * largest + 1e-300;
    bool improved = false;
    while (!improved && damping < kMostDamping) {
      Matrix damped = normal;
      for (size_t p = 0; p < free.size(); ++p) {
        damped[p][p] += damping * std::max(normal[p][p], least);
      }
      Vector next = Solve(std::move(damped), gradient);
      for (size_t p = 0; p < free.size(); ++p) {
        next[p] = std::clamp(free[p] - next[p], -kFarthest, kFarthest);
      }
      Vector next_r = problem.ResidualsAt(next);
      const double loss = problem.Loss(next_r);
      if (loss < result.loss) {
        small_steps = result.loss - loss < options.tolerance * result.loss ? small_steps + 1 : 0;
        free = std::move(next);
        r = std::move(next_r);
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
