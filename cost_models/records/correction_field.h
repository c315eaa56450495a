#ifndef PLANCAST_COST_MODELS_RECORDS_CORRECTION_FIELD_H_
#define PLANCAST_COST_MODELS_RECORDS_CORRECTION_FIELD_H_

#include <vector>

#include "absl/types/span.h"

namespace plancast {

// How far measurements lie from a model, as a smooth function of shape: with
// r = ln(measured / modelled) and x the logarithms to base 2 of the sizes, a sum
// of locally weighted fits, wide ones first, each to what the wider ones left:
//
//   minimise over a, b:  sum_i w_i (r_i - a - b (x_i - x))^2 + ridge a^2 + slope_ridge b^2
//   w_i = exp(-|x - x_i|^2 / (2 width^2)),  value a
//
// A value never leaves the range of what it is fitted to, and far from every
// record it goes to 0, continuously. Which widths and ridges are taken is what
// makes records predict each other best, each one left out in turn.
// Deterministic.
class CorrectionField {
 public:
  // `points` holds `dims` coordinates of each record, one after another.
  static CorrectionField Fit(int dims, std::vector<double> points, std::vector<double> log_ratios);

  struct Answer {
    double log_correction = 0;
    double support = 0;  // 0: no record near, 1: many; of the widest fit
    double sigma = 0;    // relative, of a figure corrected so; `model_sigma` far away
  };
  // `model_sigma`: relative error of the model itself.
  Answer At(absl::Span<const double> point, double model_sigma) const;

  // Relative error (one sigma, robust) of records left out in turn.
  double held_out_sigma() const;
  int size() const { return size_; }

 private:
  struct Layer {
    double width = 0, ridge = 0, slope_ridge = 0;
    double sigma = 0;               // of records left out, after this layer
    int step = 1;                   // every so many records are fitted to
    std::vector<double> residuals;  // of those
    double least = 0, most = 0;     // of the residuals
  };
  friend class LocalFit;

  int dims_ = 0, size_ = 0;
  std::vector<double> points_;
  std::vector<Layer> layers_;
  double raw_sigma_ = 0;  // before any layer
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_CORRECTION_FIELD_H_
