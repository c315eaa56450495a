#include "cost_models/records/interpolation_model.h"

#include <cmath>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// Less support than this moves nothing worth saying.
constexpr double kLeastSupport = 0.01;
// From here on the answer is told as the records' rather than as the model's.
constexpr double kMostlyRecords = 0.5;

}  // namespace

std::optional<KernelCost> InterpolationModel::Estimate(const KernelSpec& kernel,
                                                       const DeviceType& device) const {
  const MeasuredGroup* group = records_->FindGroup(kernel, device.name);
  if (group == nullptr) return std::nullopt;
  std::optional<KernelCost> cost = base_->Estimate(kernel, device);
  if (!cost.has_value() || cost->seconds_alone <= 0) return std::nullopt;
  const CorrectionField::Answer near = FieldOf(*group, device).At(ShapePoint(kernel), cost->sigma);
  if (near.support < kLeastSupport) return std::nullopt;
  cost->seconds_alone *= std::exp(near.log_correction);
  cost->sigma = near.sigma;
  const double shared = records_->SharedSigma(device.name);
  cost->factor_sigma = std::sqrt(near.support * shared * shared +
                                 (1 - near.support) * cost->factor_sigma * cost->factor_sigma);
  const std::string records =
      absl::StrCat(group->kernels.size(), " records of ", group->name, " on ", device.name);
  if (near.support >= kMostlyRecords) {
    cost->factor = absl::StrCat(device.name, "/records");
    cost->provenance = {Knowledge::kInterpolated,
                        absl::StrCat("between ", records, ", over ", cost->provenance.source)};
  } else {
    absl::StrAppend(&cost->provenance.source, ", drawn towards ", records);
  }
  return cost;
}

const CorrectionField& InterpolationModel::FieldOf(const MeasuredGroup& group,
                                                   const DeviceType& device) const {
  const std::pair<const MeasuredGroup*, std::string> key(&group, device.name);
  {
    std::shared_lock lock(mutex_);
    const auto found = fields_.find(key);
    if (found != fields_.end()) return found->second;
  }
  std::vector<double> points, log_ratios;
  for (size_t i = 0; i < group.kernels.size(); ++i) {
    const MeasuredKernel& measured = group.kernels[i];
    const std::optional<KernelCost> modelled = base_->Estimate(measured.kernel, device);
    if (!modelled.has_value() || modelled->seconds_alone <= 0) continue;
    const auto point = group.points.begin() + static_cast<std::ptrdiff_t>(i * group.dims);
    points.insert(points.end(), point, point + group.dims);
    log_ratios.push_back(std::log(measured.seconds / modelled->seconds_alone));
  }
  // Outside the lock: two threads may fit the same field, to the same digits.
  CorrectionField field =
      CorrectionField::Fit(group.dims, std::move(points), std::move(log_ratios));
  std::unique_lock lock(mutex_);
  return fields_.try_emplace(key, std::move(field)).first->second;
}

}  // namespace plancast
