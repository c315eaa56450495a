#include "executor/fold/fold.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/fold/blocks.h"

namespace plancast {

namespace {

// Whether all programs are told apart along the same axes.
bool SameAxes(const ExecutionGraph& graph) {
  for (const Program& program : graph.programs) {
    if (program.where.size() != graph.programs[0].where.size()) return false;
    for (const auto& [axis, coordinate] : graph.programs[0].where) {
      const auto same = [axis = axis](const auto& where) { return where.first == axis; };
      if (std::none_of(program.where.begin(), program.where.end(), same)) return false;
    }
  }
  return true;
}

}  // namespace

absl::Status CheckFits(const ExecutionGraph& graph, const Machine& machine) {
  if (graph.mesh.num_devices() > machine.num_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan needs ", graph.mesh.num_devices(), " devices (", graph.mesh.DebugString(),
        ") and the machine has ", machine.num_devices(), ". Take more hosts or smaller axes."));
  }
  return absl::OkStatus();
}

absl::StatusOr<SimGraph> Fold(const FoldInput& input) {
  RETURN_IF_ERROR(CheckFits(input.graph, input.machine));
  const bool regular = input.graph.stage_meshes.empty() && SameAxes(input.graph);
  if (input.machine.uniform() && !input.machine.mixed() && input.graph.skew.empty() && regular) {
    const std::optional<MixedRadix> radix =
        MixedRadix::Split(input.graph.mesh, input.machine, UsesHostMemory(input.graph));
    if (radix.has_value()) return FoldInClosedForm(input, *radix);
  }
  return FoldByRefinement(input);
}

}  // namespace plancast
