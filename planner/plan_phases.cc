#include "planner/plan_phases.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "executor/comm_uses.h"
#include "executor/jobs/execute_jobs.h"
#include "executor/realise.h"

namespace plancast {
namespace {

using Intervals = std::vector<std::pair<int64_t, int64_t>>;

// Sorted, without those that touch.
Intervals Joined(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end());
  Intervals joined;
  for (const auto& [start, end] : intervals) {
    if (joined.empty() || start > joined.back().second) {
      joined.emplace_back(start, end);
    } else {
      joined.back().second = std::max(joined.back().second, end);
    }
  }
  return joined;
}

int64_t Length(const Intervals& joined) {
  int64_t sum = 0;
  for (const auto& [start, end] : joined) sum += end - start;
  return sum;
}

int64_t Common(const Intervals& a, const Intervals& b) {
  int64_t sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t start = std::max(a[i].first, b[j].first);
    const int64_t end = std::min(a[i].second, b[j].second);
    sum += std::max<int64_t>(end - start, 0);
    if (a[i].second < b[j].second) {
      ++i;
    } else {
      ++j;
    }
  }
  return sum;
}

// What a device sends through its interface for one communication.
class Sent {
 public:
  Sent(const PlacedJob& job, const Machine& machine, const CommUses& uses)
      : job_(job),
        machine_(machine),
        uses_(uses),
        nic_(machine.FindLinkClass(LinkKind::kNic)),
        pricer_(*job.graph, machine, job.runtime, &job.devices) {}

  // 0: it stays inside its host.
  absl::StatusOr<double> By(int64_t device, int32_t program, int32_t comm) {
    if (nic_ < 0) return 0;
    for (const CommUse& use : uses_.uses) {
      if (use.comm != comm ||
          std::find(use.programs.begin(), use.programs.end(), program) == use.programs.end()) {
        continue;
      }
      std::vector<int64_t> members = GroupAround(*job_.graph, use, device).Members();
      for (int64_t& member : members) member = job_.devices[member];
      std::sort(members.begin(), members.end());
      ASSIGN_OR_RETURN(const int32_t number, pricer_.Price(comm, GroupPattern::Of(members)));
      const RealisedCollective& realised = pricer_.realised()[number];
      const int64_t instance = machine_.LinkInstance(nic_, job_.devices[device]);
      int64_t sharing = 0;
      for (int64_t member : members) {
        sharing += machine_.LinkInstance(nic_, member) == instance ? 1 : 0;
      }
      for (const LinkLoad& load : realised.loads) {
        if (load.link_class != nic_) continue;
        return static_cast<double>(realised.work_bytes) *
               static_cast<double>(load.coefficient_q20) / (1 << 20) /
               static_cast<double>(std::max<int64_t>(sharing, 1));
      }
      return 0;
    }
    return 0;
  }

 private:
  const PlacedJob& job_;
  const Machine& machine_;
  const CommUses& uses_;
  const int nic_;
  CommPricer pricer_;
};

}  // namespace

absl::StatusOr<PlanPhases> PhasesOf(const JobRequest& request, const Machine& machine,
                                    const Pricing& pricing, Session& session) {
  ASSIGN_OR_RETURN(const PlacedRequest one, PlaceRequest(request, machine, pricing, session));
  const ExecutionGraph& graph = *one.graph;
  PlacedJob job = one.placed;
  job.arrival_ps = 0;
  SimulateOptions options;
  options.timeline = true;
  ASSIGN_OR_RETURN(SimResult result, ExecutePlaced(job, machine, pricing.kernels(), options));
  ASSIGN_OR_RETURN(const CommUses uses, FindCommUses(graph));
  Sent sent(job, machine, uses);

  struct Class {
    int64_t device = 0;  // of the plan
    Intervals network, kernels;
    double bytes = 0;
  };
  std::vector<Class> classes(result.classes.size());
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto& placed = job.devices;
    classes[c].device =
        std::find(placed.begin(), placed.end(), result.classes[c].representative) - placed.begin();
  }
  std::vector<std::vector<double>> known(classes.size(),
                                         std::vector<double>(graph.comms.size(), -1));
  for (const Slice& slice : result.slices) {
    Class& of = classes[slice.device_class];
    const Block& block = graph.blocks[slice.block];
    if (block.kind[slice.task] == TaskKind::kKernel) {
      of.kernels.emplace_back(slice.start_ps, slice.end_ps);
      continue;
    }
    double& bytes = known[slice.device_class][block.spec[slice.task]];
    if (bytes < 0) {
      ASSIGN_OR_RETURN(bytes, sent.By(of.device, result.classes[slice.device_class].program,
                                      block.spec[slice.task]));
    }
    if (bytes == 0) continue;
    of.bytes += bytes;
    of.network.emplace_back(slice.start_ps, slice.end_ps);
  }

  PlanPhases phases;
  phases.iteration_ps = result.makespan_ps;
  std::set<int64_t> hosts;
  for (int64_t device : job.devices) hosts.insert(machine.HostOf(device));
  for (size_t c = 0; c < classes.size(); ++c) {
    const Intervals network = Joined(std::move(classes[c].network));
    const Intervals kernels = Joined(std::move(classes[c].kernels));
    const auto devices = static_cast<double>(result.classes[c].devices);
    phases.host_bytes += devices * classes[c].bytes / static_cast<double>(hosts.size());
    phases.busy_ps +=
        devices * static_cast<double>(Length(kernels)) / static_cast<double>(job.devices.size());
    if (Length(network) > phases.network_ps) {
      phases.network_ps = Length(network);
      phases.overlapped_ps = Common(network, kernels);
    }
  }
  // What runs take beyond the simulation lengthens its parts alike, at the same rates.
  SoftwareLevel level = one.level;
  if (pricing.learned() != nullptr) {
    Uncertainty::Shipped().AddTo(request.job.profile, &result);
    level.log += pricing.learned()->Log(result);
  }
  for (int64_t* part : {&phases.iteration_ps, &phases.network_ps, &phases.overlapped_ps}) {
    *part = level.RunPicoseconds(*part);
  }
  phases.busy_ps *= std::exp(level.log);
  phases.host_bytes *= std::exp(level.log);
  return phases;
}

}  // namespace plancast
