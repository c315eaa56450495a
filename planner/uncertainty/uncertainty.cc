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
  out.level = in.level();
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
  std::vector<double> levels = {in.level()};
  for (const proto::SoftwareLineage& lineage : in.lineage()) levels.push_back(lineage.level());
  for (const proto::MeasuredSoftware& runs : in.software()) levels.push_back(runs.level());
  for (const double level : levels) {
    if (std::abs(level) <= 1) continue;  // false for nan
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": a level is ", level, "; it is a logarithm and has to be between -1 and 1."));
  }
  Uncertainty out;
  out.level = in.level();
  out.sources = in.sources();
  for (const proto::SoftwareLineage& lineage : in.lineage()) {
    out.lineages.push_back({lineage.name(), lineage.level(), lineage.sources()});
  }
  out.software_from_source = in.software_from_source();
  out.software_from_documentation = in.software_from_documentation();
  out.plan = in.plan();
  out.slow_tail = in.slow_tail();
  for (const proto::MeasuredSoftware& runs : in.software()) out.software.push_back(FromProto(runs));
  return out;
}

int64_t SoftwareLevel::RunPicoseconds(int64_t simulated_ps) const {
  if (log == 0) return simulated_ps;
  return std::llround(static_cast<double>(simulated_ps) * std::exp(log));
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

SoftwareLevel Uncertainty::LevelOf(const SoftwareProfile& profile) const {
  SoftwareLevel of{level, sources, ""};
  for (const SoftwareLineage& lineage : lineages) {
    if (lineage.name != profile.lineage) continue;
    of = {level + lineage.level, lineage.sources, lineage.name};
  }
  if (const MeasuredSoftware* const runs = RunsOf(profile.base())) of.log += runs->level;
  return of;
}

void Uncertainty::AddTo(const SoftwareProfile& profile, SimResult* result) const {
  const double seconds = ToSeconds(result->makespan_ps);
  FactorShare& share = result->factors[absl::StrCat("software/", profile.base())];
  share.seconds = seconds;
  const bool well_known = !profile.from_documentation && RunsOf(profile.base()) != nullptr;
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
  // Not std::hypot, whose symbol is glibc 2.35's: wheels run from 2.34 on (tools/wheel.sh).
  return {iteration_time_s * std::exp(-kNinetyFivePercent * core),
          iteration_time_s *
              std::exp(kNinetyFivePercent * std::sqrt(core * core + slow_tail * slow_tail))};
}

}  // namespace plancast
