#ifndef PLANCAST_PLANNER_UNCERTAINTY_UNCERTAINTY_H_
#define PLANCAST_PLANNER_UNCERTAINTY_UNCERTAINTY_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "executor/executor.h"
#include "strategy/software_profile.h"

namespace plancast {

// The runs that a software profile was compared with, and how far they reach.
struct MeasuredSoftware {
  std::string profile;
  std::vector<std::string> sources;
  std::set<std::string> devices;
  int64_t rows = 0;
  int64_t most_devices = 0, most_tp = 0, most_pp = 0, most_cp = 0, most_ep = 0, most_zero = 0;
  int64_t longest_sequence = 0;
  double level = 0;  // logarithm, beside its lineage's
};

// Software whose runs tell of one another (SoftwareProfile::lineage).
struct SoftwareLineage {
  std::string name;
  double level = 0;  // logarithm, beside that of all software
  int sources = 0;   // of measured runs
};

// What runs of a software take beyond what is simulated.
struct SoftwareLevel {
  double log = 0;       // ln(run / simulated)
  int sources = 0;      // of measured runs of the lineage; of all software if it has none
  std::string lineage;  // empty: of all software

  // What a run takes that is simulated to take so long.
  int64_t RunPicoseconds(int64_t simulated_ps) const;
};

// How far measured runs lie from forecasts: x = ln(measured / forecast) is as
// likely above 0 as below, and its size is |t| times a scale, t Student's with four
// degrees of freedom (runs far off are less rare than a normal distribution has
// them). The scale below 0 is `core`; above, hypot(core, slow_tail).
//
//   core^2 = sum over factors (share of the critical path * error)^2 + own^2
//
// with the errors of kernels and links from isolated measurements, those here from
// measured runs (`plancast validate --fit-uncertainty`).
struct Uncertainty {
  // What runs of one software share: of profiles read from its source and compared with
  // runs, and of all others.
  double software_from_source = 0, software_from_documentation = 0;
  double plan = 0;       // of one plan alone
  double slow_tail = 0;  // on the slow side only
  double level = 0;      // what all software takes beyond what is simulated, a logarithm
  int sources = 0;       // that it is from
  std::vector<SoftwareLineage> lineages;
  std::vector<MeasuredSoftware> software;

  // Shipped data.
  static const Uncertainty& Shipped();
  // `what` names the text in errors: a scale that is negative or above 2.
  static absl::StatusOr<Uncertainty> Parse(absl::string_view text, absl::string_view what);

  // The measured runs of a profile; nullptr: none.
  const MeasuredSoftware* RunsOf(absl::string_view profile) const;

  // By what the simulated time of a plan under the profile is multiplied to be the median of what
  // runs take.
  SoftwareLevel LevelOf(const SoftwareProfile& profile) const;

  // Adds to the error structure of a forecast what measured runs tell: the factor
  // `software/NAME`, on which all of the time depends, and the plan's own error.
  void AddTo(const SoftwareProfile& profile, SimResult* result) const;
};

// The scale of ln(measured / forecast) without the slow tail: g' Sigma g + own.
double CoreScale(const SimResult& result);

// Central 90 % of the iteration time, seconds.
struct TimeInterval {
  double low = 0, high = 0;
};
TimeInterval IntervalOf(double iteration_time_s, double core, double slow_tail);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_UNCERTAINTY_UNCERTAINTY_H_
