#ifndef PLANCAST_STRATEGY_NODES_CHOOSE_STAGES_H_
#define PLANCAST_STRATEGY_NODES_CHOOSE_STAGES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "strategy/choose_plan.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Devices of a machine that follow one another.
struct DeviceRange {
  bool hosts = false;           // the numbers are those of hosts
  int64_t first = 0, last = 0;  // both included

  // `hosts 0-1`, `host 2`, `gpus 8-15`, `gpu 3`.
  static absl::StatusOr<DeviceRange> Parse(absl::string_view text);
  std::string DebugString() const;
  friend bool operator==(const DeviceRange& a, const DeviceRange& b) {
    return a.hosts == b.hosts && a.first == b.first && a.last == b.last;
  }
};

// What a stage says of its place.
struct StageMeshSpec {
  std::map<std::string, int64_t> mesh;  // dp, tp, cp, ep, etp; those not said are the plan's
  std::optional<int64_t> micro_batch;
  std::optional<DeviceRange> devices;  // absent: those after the stage before

  bool empty() const { return mesh.empty() && !micro_batch.has_value() && !devices.has_value(); }
  friend bool operator==(const StageMeshSpec& a, const StageMeshSpec& b);
};

// The first device of a host, and the one after its last. Errors: a host that is not there.
using DevicesOfHost = std::function<absl::StatusOr<std::pair<int64_t, int64_t>>(int64_t host)>;

// Settles a plan whose pipeline stages have meshes of their own, one of `specs` for each virtual
// stage; those of one stage must say the same, or nothing after the first. A micro-batch has as
// many samples on every stage: `mb` of the plan is the first stage's. Errors, which name the stage:
// ChoosePlan's for each of them; unknown axes; devices that two stages have, that no stage has and
// that are not among the `idle` either, or that the machine lacks; samples that do not divide.
absl::StatusOr<ChosenPlan> ChooseStages(const ShortForm& form,
                                        const std::vector<StageMeshSpec>& specs,
                                        const PlanContext& context,
                                        const DevicesOfHost& host_devices,
                                        const SoftwareProfile& profile,
                                        const std::vector<DeviceRange>& idle = {});

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_CHOOSE_STAGES_H_
