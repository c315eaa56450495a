#include "executor/fold/fold.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

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

absl::StatusOr<SimGraph> Fold(const FoldInput& input) {
  if (input.graph.mesh.num_devices() > input.machine.num_devices()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan needs ", input.graph.mesh.num_devices(), " devices (",
                     input.graph.mesh.DebugString(), ") and the machine has ",
                     input.machine.num_devices(), ". Take more hosts or smaller axes."));
  }
  if (input.machine.uniform() && SameAxes(input.graph)) {
    const std::optional<MixedRadix> radix = MixedRadix::Split(input.graph.mesh, input.machine);
    if (radix.has_value()) return FoldInClosedForm(input, *radix);
  }
  return FoldByRefinement(input);
}

}  // namespace plancast
