#include "planner/uncertainty/warnings.h"

#include <cmath>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/picoseconds.h"

namespace plancast {
namespace {

// Kernels and links with less of the critical path go without a word.
constexpr double kLeastShare = 0.02;
// From here on the topology of a host may decide between plans.
constexpr double kTopologyShare = 0.05;

void AddFactors(const SimResult& result, std::vector<std::string>* warnings) {
  double path = 0;
  std::vector<std::string> names;
  for (const auto& [name, share] : result.factors) {
    if (!share.extrapolated) continue;
    path += share.seconds;
    names.push_back(absl::StrCat("`", name, "`"));
  }
  const double share = path / (ToSeconds(result.makespan_ps));
  if (names.empty() || !(share >= kLeastShare)) return;
  warnings->push_back(
      absl::StrCat(std::lround(share * 100),
                   " % of the critical path is extrapolated from other GPUs or links: ",
                   absl::StrJoin(names, ", ")));
}

void AddSoftware(const MeasuredSoftware* runs, const SoftwareProfile& profile,
                 std::vector<std::string>* warnings) {
  if (profile.from_documentation) {
    warnings->push_back(
        absl::StrCat("software profile `", profile.name, "` is known from documentation only"));
  }
  if (runs == nullptr) {
    warnings->push_back(absl::StrCat("software profile `", profile.name,
                                     "` has no run among those that intervals were fitted to"));
  }
}

void AddReach(const MeasuredSoftware& runs, const PlanOptions& plan, int64_t seq,
              const Machine& machine, std::vector<std::string>* warnings) {
  struct Quantity {
    absl::string_view name;
    int64_t value, most;
  };
  std::vector<std::string> beyond;
  for (const Quantity& q :
       {Quantity{"devices=", machine.num_devices(), runs.most_devices},
        Quantity{"tp=", plan.tp, runs.most_tp}, Quantity{"pp=", plan.pp, runs.most_pp},
        Quantity{"cp=", plan.cp, runs.most_cp}, Quantity{"ep=", plan.ep, runs.most_ep},
        Quantity{"zero=", plan.zero, runs.most_zero},
        Quantity{"sequence=", seq, runs.longest_sequence}}) {
    if (q.value <= q.most) continue;
    beyond.push_back(absl::StrCat(q.name, q.value, " (at most ", q.most, ")"));
  }
  if (!beyond.empty()) {
    warnings->push_back(absl::StrCat("beyond the measured runs of `", runs.profile,
                                     "`: ", absl::StrJoin(beyond, ", ")));
  }
  std::set<std::string> said;
  for (int s = 0; s < machine.num_sections(); ++s) {
    const DeviceType& device = machine.section(s).device();
    if (runs.devices.count(device.name) > 0 || runs.devices.count(device.like) > 0 ||
        !said.insert(device.name).second) {
      continue;
    }
    warnings->push_back(absl::StrCat("no measured run of `", runs.profile, "` is on ", device.name,
                                     "; there are on ", absl::StrJoin(runs.devices, ", ")));
  }
  if (machine.mixed()) {
    warnings->push_back(absl::StrCat("no measured run of `", runs.profile,
                                     "` is on several kinds of hosts at once"));
  }
}

// How the devices of a PCIe host hang together decides where they talk much, and few sources
// say it.
void AddTopology(const Machine& machine, const SimResult& result,
                 std::vector<std::string>* warnings) {
  if (machine.mixed()) {
    for (int s = 0; s < machine.num_sections(); ++s) {
      AddTopology(machine.section(s), result, warnings);
    }
    return;
  }
  const std::string& topology = machine.spec().topology;
  const bool bridge = topology == "host-bridge";
  if (!bridge && topology != "pcie-switch") return;
  double path = 0;
  for (const auto& [name, share] : result.factors) {
    if (absl::StartsWith(name, absl::StrCat(machine.spec().intra_link, "/"))) path += share.seconds;
  }
  const double share = path / (ToSeconds(result.makespan_ps));
  if (!(share >= kTopologyShare)) return;
  warnings->push_back(absl::StrCat(
      std::lround(share * 100), " % of the critical path is traffic inside PCIe hosts, ",
      bridge ? "as measured on one box whose switches the CPUs join; others may be several times "
               "faster"
             : "as switches carry it; where CPUs join the devices (PHB, NODE or SYS in `nvidia-smi "
               "topo -m`; `topology: host-bridge`) it may take several times as long"));
}

}  // namespace

std::vector<std::string> ExtrapolationWarnings(const Uncertainty& uncertainty,
                                               const SoftwareProfile& profile,
                                               const PlanOptions& plan, int64_t seq,
                                               const Machine& machine, const SimResult& result) {
  std::vector<std::string> warnings;
  AddFactors(result, &warnings);
  AddTopology(machine, result, &warnings);
  const MeasuredSoftware* const runs = uncertainty.RunsOf(profile.base());
  AddSoftware(runs, profile, &warnings);
  if (runs != nullptr) AddReach(*runs, plan, seq, machine, &warnings);
  return warnings;
}

}  // namespace plancast
