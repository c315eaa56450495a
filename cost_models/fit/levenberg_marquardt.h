#ifndef PLANCAST_COST_MODELS_FIT_LEVENBERG_MARQUARDT_H_
#define PLANCAST_COST_MODELS_FIT_LEVENBERG_MARQUARDT_H_

#include <functional>
#include <vector>

#include "absl/types/span.h"

namespace plancast {

// A parameter and the open interval it stays in; low < high.
struct Bounds {
  double low = 0, high = 1;
};

struct FitOptions {
  // Residuals beyond this count linearly, not quadratically (Huber's loss).
  double huber = 0.05;
  int most_iterations = 60;
  // Ends when a step improves the loss by less than this share of it.
  double tolerance = 1e-7;
};

struct FitResult {
  std::vector<double> parameters;
  double loss = 0;  // weighted mean of Huber's loss
  int iterations = 0;
};

// Residuals of a model with these parameters, one per observation.
using Residuals =
    std::function<void(absl::Span<const double> parameters, absl::Span<double> residuals)>;

// The parameters with the least weighted robust loss near `start`, by Levenberg's and
// Marquardt's method: damped Gauss-Newton steps over reweighted residuals, derivatives by
// forward differences. Bounds are kept by a logistic map of each parameter; a start outside
// of them is moved to their inside. Deterministic, and of the same bits on every processor as
// far as `residuals` is. `weights` has one entry per observation, not
// negative; the residuals are finite wherever the bounds hold.
FitResult Minimise(const Residuals& residuals, absl::Span<const double> weights,
                   absl::Span<const Bounds> bounds, absl::Span<const double> start,
                   const FitOptions& options = {});

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_FIT_LEVENBERG_MARQUARDT_H_
