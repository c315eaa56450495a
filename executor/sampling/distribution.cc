#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "executor/sampling/sampling.h"

namespace plancast {
namespace {

constexpr double kPicosecond = ToSeconds(1);

absl::Status OutOfRange(const char* what, double value, const char* right) {
  return absl::InvalidArgumentError(absl::StrCat("`", what, "` is ", value, "; give ", right, "."));
}

}  // namespace

absl::Status Randomness::Check() const {
  if (!(jitter >= 0 && jitter <= 2)) return OutOfRange("jitter", jitter, "a sigma from 0 to 2");
  if (!(straggler_probability >= 0 && straggler_probability <= 1)) {
    return OutOfRange("stragglers", straggler_probability, "a probability from 0 to 1");
  }
  if (!(straggler_speed >= 0.001 && straggler_speed <= 1)) {
    return OutOfRange("straggler speed", straggler_speed, "a share of the speed, 0.001 to 1");
  }
  if (samples < 0 || samples > 1'000'000) {
    return OutOfRange("samples", static_cast<double>(samples), "1 to 1000000");
  }
  if (threads < 1 || threads > 1024) return OutOfRange("threads", threads, "1 to 1024");
  return absl::OkStatus();
}

double Distribution::mean_s() const {
  double sum = 0;
  for (int64_t sample : samples_ps) sum += ToSeconds(sample);
  return samples_ps.empty() ? 0 : sum / static_cast<double>(samples_ps.size());
}

double Distribution::stddev_s() const {
  if (samples_ps.size() < 2) return 0;
  const double mean = mean_s();
  double sum = 0;
  for (int64_t sample : samples_ps) {
    const double off = ToSeconds(sample) - mean;
    sum += off * off;
  }
  return std::sqrt(sum / static_cast<double>(samples_ps.size() - 1));
}

double Distribution::quantile_s(double q) const {
  if (samples_ps.empty()) return 0;
  std::vector<int64_t> sorted = samples_ps;
  std::sort(sorted.begin(), sorted.end());
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double low = static_cast<double>(sorted[below]);
  return (low + (at - std::floor(at)) * (static_cast<double>(sorted[above]) - low)) * kPicosecond;
}

}  // namespace plancast
