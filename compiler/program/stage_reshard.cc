#include "compiler/program/stage_reshard.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/layout/reshard.h"

namespace plancast {
namespace {

// The stage's devices by themselves: the pipeline axis has one place.
absl::StatusOr<DeviceMesh> WithoutPipeline(const DeviceMesh& mesh) {
  std::vector<MeshAxis> axes = mesh.axes();
  if (axes.empty() || axes[0].name != "pp") {
    return absl::InvalidArgumentError(
        "stages with meshes of their own need `pp` as the slowest axis of `order`; leave `order` "
        "out, or end it with `pp`.");
  }
  axes[0].size = 1;
  return DeviceMesh::Create(std::move(axes));
}

// Programs of several tensors that go in the same way go together.
std::string WayOf(const ReshardProgram& program) {
  std::string way(kReshardStrategyNames[program.strategy]);
  for (const RelayoutStep& step : program.after) {
    for (const int axis : step.axes) absl::StrAppend(&way, ".", axis);
  }
  return way;
}

class BorderPlanner {
 public:
  BorderPlanner(const StagePlace& from, const StagePlace& to, bool backward)
      : from_(from), to_(to), backward_(backward) {}

  absl::StatusOr<Reshard> Plan(absl::Span<const BorderTensor> tensors) {
    ASSIGN_OR_RETURN(from_mesh_, WithoutPipeline(*from_.mesh));
    ASSIGN_OR_RETURN(to_mesh_, WithoutPipeline(*to_.mesh));
    for (const BorderTensor& tensor : tensors) {
      const Layout& source = backward_ ? tensor.after : tensor.before;
      const Layout& target = backward_ ? tensor.before : tensor.after;
      const ReshardProblem problem{tensor.shape,
                                   {from_mesh_, source, from_.first_device},
                                   {to_mesh_, target, to_.first_device}};
      ASSIGN_OR_RETURN(const std::vector<ReshardProgram> programs, PlanReshards(problem));
      for (const ReshardProgram& program : programs) Add(program, tensor.element_bytes);
    }
    Reshard reshard;
    for (const std::string& name : order_) {
      Draft& draft = drafts_[name];
      if (draft.tensors < tensors.size()) continue;
      Reshard::Way& way = reshard.ways.emplace_back();
      way.name = name;
      for (const auto& [pair, bytes] : draft.flows) {
        way.flows.push_back({pair.first, pair.second, static_cast<int64_t>(std::ceil(bytes))});
      }
      way.after = std::move(draft.after);
      way.after.bytes = static_cast<int64_t>(std::ceil(draft.after_bytes));
    }
    return reshard;
  }

 private:
  struct Draft {
    size_t tensors = 0;
    std::map<std::pair<int64_t, int64_t>, double> flows;
    CommSpec after;
    double after_bytes = 0;
  };

  void Add(const ReshardProgram& program, double element_bytes) {
    const std::string name = WayOf(program);
    const auto [it, inserted] = drafts_.try_emplace(name);
    if (inserted) order_.push_back(name);
    Draft& draft = it->second;
    ++draft.tensors;
    program.transfers.ForEach([&](const Transfer& transfer) {
      draft.flows[{from_.first_device + transfer.source, to_.first_device + transfer.target}] +=
          static_cast<double>(transfer.elements) * element_bytes;
    });
    for (const RelayoutStep& step : program.after) {
      draft.after.kind = step.kind;
      draft.after.axes = step.axes;
      draft.after.stage_mesh = to_.stage_mesh;
      draft.after_bytes += static_cast<double>(step.elements) * element_bytes;
    }
  }

  const StagePlace &from_, &to_;
  const bool backward_;
  DeviceMesh from_mesh_, to_mesh_;
  std::map<std::string, Draft> drafts_;
  std::vector<std::string> order_;
};

}  // namespace

absl::StatusOr<Reshard> ReshardAtBorder(absl::Span<const BorderTensor> tensors,
                                        const StagePlace& from, const StagePlace& to,
                                        bool backward) {
  return BorderPlanner(from, to, backward).Plan(tensors);
}

int64_t CrossingBytes(const Reshard& reshard) {
  int64_t most = 0;
  for (const Reshard::Way& way : reshard.ways) {
    int64_t bytes = 0;
    for (const Reshard::Flow& flow : way.flows) bytes += flow.bytes;
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace plancast
