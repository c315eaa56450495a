#include "planner/uncertainty/uncertainty.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/embedded_file.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "planner/uncertainty/uncertainty_data.h"
#include "proto/text_proto.h"
#include "proto/uncertainty.pb.h"

namespace plancast {
namespace {

// 95 % of Student's t with four degrees of freedom.
constexpr double kNinetyFivePercent = 2.131847;

MeasuredSoftware FromProto(const proto::MeasuredSoftware& in) {
  MeasuredSoftware out;
  out.profile = in.profile();
  out.sources.assign(in.source().begin(), in.source().end());
  out.devices.insert(in.device().begin(), in.device().end());
  out.rows = in.rows();
  out.most_devices = in.most_devices();
  out.most_tp = in.most_tp();
  out.most_pp = in.most_pp();
  out.most_cp = in.most_cp();
  out.most_ep = in.most_ep();
  out.most_zero = in.most_zero();
  out.longest_sequence = in.longest_sequence();
  return out;
}

}  // namespace

absl::StatusOr<Uncertainty> Uncertainty::Parse(absl::string_view text, absl::string_view what) {
  ASSIGN_OR_RETURN(const auto in, ParseTextProto<proto::Uncertainty>(text, what));
  for (const double scale :
       {in.software_from_source(), in.software_from_documentation(), in.plan(), in.slow_tail()}) {
    if (scale >= 0 && scale <= 2) continue;  // false for nan
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": a scale is ", scale, "; it is of a logarithm and has to be between 0 and 2."));
  }
  Uncertainty out;
  out.software_from_source = in.software_from_source();
  out.software_from_documentation = in.software_from_documentation();
  out.plan = in.plan();
  out.slow_tail = in.slow_tail();
  for (const proto::MeasuredSoftware& runs : in.software()) out.software.push_back(FromProto(runs));
  return out;
}

const Uncertainty& Uncertainty::Shipped() {
  static const Uncertainty* const shipped = [] {
    const EmbeddedFile* file = FindByStem(UncertaintyData(), "uncertainty");
    PLANCAST_CHECK(file != nullptr);
    auto parsed = Parse(file->contents, file->path);
    PLANCAST_CHECK_OK(parsed);
    return new Uncertainty(*std::move(parsed));
  }();
  return *shipped;
}

const MeasuredSoftware* Uncertainty::RunsOf(absl::string_view profile) const {
  for (const MeasuredSoftware& runs : software) {
    if (runs.profile == profile) return &runs;
  }
  return nullptr;
}

void Uncertainty::AddTo(const SoftwareProfile& profile, SimResult* result) const {
  const double seconds = ToSeconds(result->makespan_ps);
  FactorShare& share = result->factors[absl::StrCat("software/", profile.name)];
  share.seconds = seconds;
  const bool well_known = !profile.from_documentation && RunsOf(profile.name) != nullptr;
  share.sigma = well_known ? software_from_source : software_from_documentation;
  result->own_variance_s2 += seconds * plan * seconds * plan;
}

double CoreScale(const SimResult& result) {
  if (result.makespan_ps <= 0) return 0;
  double variance = result.own_variance_s2;
  for (const auto& [name, share] : result.factors) {
    variance += share.seconds * share.sigma * share.seconds * share.sigma;
  }
  return std::sqrt(variance) / ToSeconds(result.makespan_ps);
}

TimeInterval IntervalOf(double iteration_time_s, double core, double slow_tail) {
  return {iteration_time_s * std::exp(-kNinetyFivePercent * core),
          iteration_time_s * std::exp(kNinetyFivePercent * std::hypot(core, slow_tail))};
}

}  // namespace plancast
