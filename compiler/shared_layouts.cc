#include "compiler/shared_layouts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/bind/plan_mesh.h"

namespace plancast {
namespace {

class Users {
 public:
  Users(const BoundModel& bound, const std::vector<std::shared_ptr<const CompiledBody>>& bodies)
      : bound_(bound), bodies_(bodies) {}

  absl::Status CheckAlike(const SharedParameter::Use& a, const SharedParameter::Use& b) const {
    for (int axis = 0; axis < bound_.mesh.num_axes(); ++axis) {
      const Placement &of_a = PlacementOf(a, axis), &of_b = PlacementOf(b, axis);
      if ((of_a.is_on() || of_b.is_on()) && of_a != of_b) {
        return absl::InvalidArgumentError(absl::StrCat(
            "`", ModelGraph::PathOf(bound_.graph.segments[a.segment]), "` and `",
            ModelGraph::PathOf(bound_.graph.segments[b.segment]),
            "` share a parameter (tied embeddings), and `on` puts them on different ranks. Name "
            "the same ranks at both."));
      }
      if (of_a.is_on() && IsDataAxis(bound_.mesh, axis)) {
        return absl::InvalidArgumentError(absl::StrCat(
            NameOf(a), " and ", NameOf(b),
            " are one parameter (tied embeddings), and `on` puts it on some data-parallel ranks. "
            "Leave `on` out at both, or name ranks of `tp`."));
      }
      if (bound_.mesh.size(axis) == 1 || CutBy(a, axis) == CutBy(b, axis)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(a), " and ", NameOf(b), " are one parameter, and `",
                       bound_.mesh.root(axis), "` cuts ", CutBy(a, axis), " of the one and ",
                       CutBy(b, axis), " of the other. Say the same `split` at both."));
    }
    return absl::OkStatus();
  }

 private:
  const TensorInfo& TensorOf(const SharedParameter::Use& use) const {
    return bound_.graph.bodies[bound_.graph.segments[use.segment].body].tensors[use.tensor];
  }
  const Placement& PlacementOf(const SharedParameter::Use& use, int axis) const {
    return bodies_[use.segment]->plan.parameter_layouts[use.tensor].placements[axis];
  }
  std::string NameOf(const SharedParameter::Use& use) const {
    return absl::StrCat("`", bound_.graph.segments[use.segment].path, ".", TensorOf(use).name, "`");
  }
  std::string CutBy(const SharedParameter::Use& use, int axis) const {
    const Placement& placement = PlacementOf(use, axis);
    if (!placement.is_shard()) return "nothing";
    return absl::StrCat("`", bound_.graph.dims[TensorOf(use).dims[placement.dim]].name, "`");
  }

  const BoundModel& bound_;
  const std::vector<std::shared_ptr<const CompiledBody>>& bodies_;
};

}  // namespace

absl::Status CheckKeptAlike(const BoundModel& bound,
                            const std::vector<std::shared_ptr<const CompiledBody>>& bodies,
                            const SharedParameter& parameter) {
  const Users users(bound, bodies);
  const SharedParameter::Use* first = nullptr;  // others are on stages with meshes of their own
  for (const SharedParameter::Use& use : parameter.uses) {
    if (!bound.Holds(use.segment)) continue;
    if (first != nullptr) {
      RETURN_IF_ERROR(users.CheckAlike(*first, use));
    } else {
      first = &use;
    }
  }
  return absl::OkStatus();
}

}  // namespace plancast
