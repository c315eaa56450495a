#include "planner/uncertainty/learned.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "planner/uncertainty/uncertainty.h"

namespace plancast {
namespace {

// Shares of the names, in their order; 0 of those that a plan does not hang on.
std::vector<double> InOrder(const std::vector<std::string>& names, const SimResult& result) {
  const std::map<std::string, LearnableShare> shares = LearnableShares(result);
  std::vector<double> out;
  for (const std::string& name : names) {
    const auto found = shares.find(name);
    out.push_back(found == shares.end() ? 0 : found->second.share);
  }
  return out;
}

}  // namespace

std::map<std::string, LearnableShare> LearnableShares(const SimResult& result) {
  std::map<std::string, LearnableShare> shares;
  if (result.makespan_ps <= 0) return shares;
  const double seconds = ToSeconds(result.makespan_ps);
  for (const auto& [name, factor] : result.factors) {
    shares[name] = {factor.seconds / seconds, factor.sigma};
  }
  double exposed = 0, bubble = 0, launch = 0, devices = 0;
  for (const DeviceClassResult& entry : result.classes) {
    const Breakdown& b = entry.breakdown;
    const auto members = static_cast<double>(entry.devices);
    exposed += members * static_cast<double>(b.exposed_tp + b.exposed_dp + b.exposed_pp +
                                             b.exposed_cp + b.exposed_ep + b.exposed_offload);
    bubble += members * static_cast<double>(b.bubble);
    launch += members * static_cast<double>(b.launch + b.other);
    devices += members;
  }
  const double whole = devices * static_cast<double>(result.makespan_ps);
  if (whole > 0) {
    shares["part/exposed"] = {exposed / whole, 0};
    shares["part/bubble"] = {bubble / whole, 0};
    shares["part/launch"] = {launch / whole, 0};
  }
  return shares;
}

absl::StatusOr<Learned> Learned::Create(std::vector<std::string> names, std::vector<double> mean,
                                        std::vector<double> covariance, double plan) {
  const size_t n = names.size();
  if (mean.size() != n || covariance.size() != n * n) {
    return absl::InvalidArgumentError(absl::StrCat("what was learned names ", n,
                                                   " factors and has ", mean.size(), " means and ",
                                                   covariance.size(), " covariances."));
  }
  const auto number = [](double value) { return std::abs(value) < 10; };  // false for nan
  if (!std::all_of(mean.begin(), mean.end(), number) ||
      !std::all_of(covariance.begin(), covariance.end(), number) || !number(plan) || plan < 0) {
    return absl::InvalidArgumentError("what was learned has figures that are none of logarithms.");
  }
  Learned learned;
  learned.names_ = std::move(names);
  learned.mean_ = std::move(mean);
  learned.covariance_ = std::move(covariance);
  learned.plan_ = plan;
  return learned;
}

double Learned::Log(const SimResult& result) const {
  const std::vector<double> shares = InOrder(names_, result);
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) sum += shares[i] * mean_[i];
  return sum;
}

double Learned::Narrow(double shipped_plan, SimResult* result) const {
  const std::vector<double> shares = InOrder(names_, *result);
  const size_t n = names_.size();
  double variance = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) variance += shares[i] * covariance_[i * n + j] * shares[j];
    const auto factor = result->factors.find(names_[i]);
    if (factor != result->factors.end()) {
      factor->second.sigma = std::sqrt(std::max(covariance_[i * n + i], 0.0));
    }
  }
  const double seconds = ToSeconds(result->makespan_ps);
  if (seconds <= 0) return 0;
  // What was not observed stays as unsure as it was.
  for (const auto& [name, factor] : result->factors) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) continue;
    const double part = factor.seconds / seconds * factor.sigma;
    variance += part * part;
  }
  const double own = result->own_variance_s2 / seconds / seconds;
  const double replaced = std::max(own - shipped_plan * shipped_plan, 0.0) + plan_ * plan_;
  result->own_variance_s2 = replaced * seconds * seconds;
  return std::sqrt(std::max(variance, 0.0) + replaced);
}

}  // namespace plancast
