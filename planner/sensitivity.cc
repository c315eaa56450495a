#include "planner/sensitivity.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "cluster/named_links.h"
#include "executor/executor.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/run_parameters.h"

namespace plancast {
namespace {

using Target = WhatIfChange::Target;

constexpr size_t kMostOps = 8;

std::vector<WhatIfChange> Candidates(const ExecutionGraph& graph, const Machine& machine,
                                     const Pricing& pricing) {
  std::vector<WhatIfChange> changes;
  const auto add = [&](Target target, std::string name, double time) {
    changes.push_back({target, std::move(name), -1, time});
  };
  for (const std::string& name : LinkNames(machine)) {
    const int link_class = LinkClassesNamed(machine, name)[0];
    if (machine.link_classes()[link_class].reaches != Level::kDevice) {
      add(Target::kLink, name, 0.5);
    }
  }
  std::set<std::string> families, purposes, kinds;
  for (const Block& block : graph.blocks) {
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] == TaskKind::kComm) {
        purposes.emplace(kPurposeNames[block.purpose[t]]);
        kinds.emplace(kCollectiveKindNames[graph.comms[block.spec[t]].kind]);
      } else {
        families.emplace(kKernelFamilyNames[graph.kernels[block.spec[t]].family]);
      }
    }
  }
  add(Target::kCompute, "", 0.5);
  for (const std::string& family : families) add(Target::kKernel, family, 0.5);
  for (const double time : {0.5, 0.0}) {
    if (!purposes.empty()) add(Target::kCommunication, "", time);
    for (const std::string& purpose : purposes) add(Target::kPurpose, purpose, time);
    for (const std::string& kind : kinds) add(Target::kCollective, kind, time);
  }
  add(Target::kLaunch, "", 0);
  std::vector<double> seconds;
  for (const KernelSpec& kernel : graph.kernels) {
    double sum = 0;  // over the kinds of devices
    for (int s = 0; s < machine.num_sections(); ++s) {
      const std::optional<KernelCost> cost =
          pricing.kernels().Estimate(kernel, machine.section(s).device());
      if (cost.has_value()) sum += cost->seconds_alone;
    }
    seconds.push_back(sum);
  }
  std::vector<std::string> ops = OpsByTime(graph, seconds);
  ops.resize(std::min(ops.size(), kMostOps));
  for (std::string& op : ops) add(Target::kOp, std::move(op), 0.5);
  return changes;
}

}  // namespace

absl::StatusOr<SensitivityTable> Sensitivities(const Job& job, const Machine& machine,
                                               const Pricing& pricing, Session& session,
                                               std::vector<WhatIfChange> candidates) {
  ASSIGN_OR_RETURN(const PlanGraph plan, DrawAndCompile(job, machine, session, &pricing));
  const RuntimeParams runtime = RuntimeOf(job.profile, machine);
  if (candidates.empty()) candidates = Candidates(*plan.execution, machine, pricing);
  SensitivityTable table;
  ASSIGN_OR_RETURN(const SimResult now,
                   Execute(*plan.execution, machine, pricing.kernels(), runtime));
  const SoftwareLevel level = pricing.Level(job.profile, *plan.graph);
  table.iteration_time_s = ToSeconds(level.RunPicoseconds(now.makespan_ps));
  for (const WhatIfChange& candidate : candidates) {
    ASSIGN_OR_RETURN(const ChangedPlan changed,
                     ChangePlan({candidate}, *plan.execution, machine, runtime));
    ASSIGN_OR_RETURN(const SimResult then,
                     Execute(changed.graph, changed.machine, pricing.kernels(), changed.runtime,
                             changed.options));
    table.rows.push_back(
        {candidate.DebugString(), ToSeconds(level.RunPicoseconds(then.makespan_ps))});
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return std::tie(a.iteration_time_s, a.change) < std::tie(b.iteration_time_s, b.change);
  });
  return table;
}

}  // namespace plancast
