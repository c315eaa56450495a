#include "cost_models/records/correction_field.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace plancast {
namespace {

// In octaves: sizes within a factor of 4, ... 1.2 count as near.
constexpr double kWidths[] = {2, 1, 0.5, 0.25};
constexpr double kFlat = std::numeric_limits<double>::infinity();  // a mean: no slope
struct Ridge {
  double value, slope;
};
constexpr Ridge kRidges[] = {{0.1, 0.1},   {0.1, 1},   {0.3, 3},  {0.1, kFlat},
                             {0.3, kFlat}, {1, kFlat}, {3, kFlat}};
// A layer must make records predict each other better by this much.
constexpr double kBetter = 0.99;
// Wide fits need no more records than this; narrow ones take all.
constexpr int kEnough = 400;
constexpr double kNarrow = 1;
// exp(-6): too little to count.
constexpr double kReach = 12;
// However many records are far away, they count no more than so many there.
constexpr double kCrowd = 8;

double RobustSigma(const std::vector<double>& residuals) {
  if (residuals.empty()) return 0;
  std::vector<double> sizes;
  for (double r : residuals) sizes.push_back(std::abs(r));
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return 1.4826 * *middle;
}

double MeanSize(const std::vector<double>& residuals) {
  double sum = 0;
  for (double r : residuals) sum += std::abs(r);
  return residuals.empty() ? 0 : sum / static_cast<double>(residuals.size());
}

}  // namespace

// The sums of one weighted fit around a point, for any ridge.
class LocalFit {
 public:
  // Of every `step`-th record, less the one numbered `left_out`.
  LocalFit(const CorrectionField& field, const double* at, double width, int step,
           const std::vector<double>& residuals, int left_out)
      : dims_(field.dims_),
        normal_(Eigen::MatrixXd::Zero(dims_ + 1, dims_ + 1)),
        right_(Eigen::VectorXd::Zero(dims_ + 1)) {
    Eigen::VectorXd row(dims_ + 1);
    row[0] = 1;
    for (size_t i = 0; i < residuals.size(); ++i) {
      const int record = static_cast<int>(i) * step;
      if (record == left_out) continue;
      const double* point = field.points_.data() + static_cast<size_t>(record) * dims_;
      double distance = 0;
      for (int d = 0; d < dims_; ++d) {
        row[d + 1] = point[d] - at[d];
        distance += row[d + 1] * row[d + 1];
      }
      distance /= width * width;
      if (left_out >= 0 && distance > kReach) continue;
      const double w = std::exp(-distance / 2);
      heaviest_ = std::max(heaviest_, w);
      normal_.selfadjointView<Eigen::Lower>().rankUpdate(row, w);
      right_ += w * residuals[i] * row;
    }
  }

  // 0 to 1: how much of the value is the records'.
  double Support(double ridge) const {
    const double weight = std::min(normal_(0, 0), kCrowd * heaviest_);
    return weight / (weight + ridge);
  }

  double Value(double ridge, double slope_ridge) const {
    const double weight = normal_(0, 0);
    if (weight <= 0) return 0;
    // As if the crowd were no larger.
    const double scaled = ridge;
    if (slope_ridge == kFlat) return right_[0] / (weight + scaled);
    Eigen::MatrixXd normal = normal_.selfadjointView<Eigen::Lower>();
    normal(0, 0) += scaled;
    for (int d = 1; d <= dims_; ++d) normal(d, d) += slope_ridge;
    return normal.ldlt().solve(right_)[0];
  }

 private:
  int dims_;
  Eigen::MatrixXd normal_;
  Eigen::VectorXd right_;
  double heaviest_ = 0;
};

CorrectionField CorrectionField::Fit(int dims, std::vector<double> points,
                                     std::vector<double> log_ratios) {
  constexpr int kChoices = std::size(kRidges);
  CorrectionField field;
  field.dims_ = dims;
  field.size_ = static_cast<int>(log_ratios.size());
  field.points_ = std::move(points);
  field.raw_sigma_ = RobustSigma(log_ratios);
  std::vector<double> left = std::move(log_ratios);
  for (double width : kWidths) {
    Layer layer;
    layer.width = width;
    layer.step = width > kNarrow ? (field.size_ + kEnough - 1) / kEnough : 1;
    for (int i = 0; i < field.size_; i += layer.step) layer.residuals.push_back(left[i]);
    if (layer.residuals.empty()) break;
    const auto [least, most] = std::minmax_element(layer.residuals.begin(), layer.residuals.end());
    layer.least = std::min(*least, 0.0);
    layer.most = std::max(*most, 0.0);
    std::vector<double> after[kChoices];
    for (int i = 0; i < field.size_; ++i) {
      const LocalFit fit(field, field.points_.data() + static_cast<size_t>(i) * dims, width,
                         layer.step, layer.residuals, i);
      for (int c = 0; c < kChoices; ++c) {
        const double value = fit.Value(kRidges[c].value, kRidges[c].slope);
        after[c].push_back(left[i] - std::clamp(value, layer.least, layer.most));
      }
    }
    int best = -1;
    double least_error = kBetter * MeanSize(left);
    for (int c = 0; c < kChoices; ++c) {
      if (MeanSize(after[c]) >= least_error) continue;
      least_error = MeanSize(after[c]);
      best = c;
    }
    if (best < 0) continue;
    layer.ridge = kRidges[best].value;
    layer.slope_ridge = kRidges[best].slope;
    layer.sigma = RobustSigma(after[best]);
    left = std::move(after[best]);
    field.layers_.push_back(std::move(layer));
  }
  return field;
}

CorrectionField::Answer CorrectionField::At(absl::Span<const double> point,
                                            double model_sigma) const {
  Answer answer;
  double variance = model_sigma * model_sigma;
  for (const Layer& layer : layers_) {
    const LocalFit fit(*this, point.data(), layer.width, layer.step, layer.residuals, -1);
    const double support = fit.Support(layer.ridge);
    answer.log_correction +=
        std::clamp(fit.Value(layer.ridge, layer.slope_ridge), layer.least, layer.most);
    answer.support = std::max(answer.support, support);
    variance = support * layer.sigma * layer.sigma + (1 - support) * variance;
  }
  answer.sigma = std::sqrt(variance);
  return answer;
}

double CorrectionField::held_out_sigma() const {
  return layers_.empty() ? raw_sigma_ : layers_.back().sigma;
}

}  // namespace plancast
