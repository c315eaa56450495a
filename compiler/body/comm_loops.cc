#include "compiler/body/comm_loops.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The single collective that a relayout is, or nullptr.
const RelayoutStep* OnlyCollective(const PlanStep& step, CollectiveKind kind) {
  if (step.kind != PlanStep::Kind::kRelayout || step.inputs.size() != 1) return nullptr;
  if (step.relayout.steps.size() != 1) return nullptr;
  const RelayoutStep& only = step.relayout.steps[0];
  return only.is_collective && only.kind == kind ? &only : nullptr;
}

// The dim of which `cut` has a part along each of `axes`, or -1.
int DimOver(const Layout& cut, const std::vector<int>& axes) {
  int dim = -1;
  for (const int axis : axes) {
    const Placement& placement = cut.placements[axis];
    if (!placement.is_shard() || (dim >= 0 && placement.dim != dim)) return -1;
    dim = placement.dim;
  }
  return dim;
}

class LoopFinder {
 public:
  LoopFinder(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
             BodyPlan* plan)
      : body_(graph.bodies[bound.body]), mesh_(mesh), bound_(bound), plan_(*plan) {
    readers_.assign(plan_.values.size(), 0);
    for (const std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
      for (const PlanStep& step : *steps) {
        ForEachRead(step, [&](int value) { ++readers_[value]; });
      }
    }
    for (const std::vector<int>* kept :
         {&plan_.saved, &plan_.out_ports, &plan_.grad_out_ports, &plan_.in_ports}) {
      for (const int value : *kept) {
        if (value >= 0) ++readers_[value];
      }
    }
  }

  absl::Status Run() {
    std::vector<bool> found(body_.ops.size(), false);
    for (std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
      steps_ = steps;
      for (PlanStep& step : *steps) {
        if (step.kind != PlanStep::Kind::kOp || !Told(step.op.op)) continue;
        ASSIGN_OR_RETURN(const bool loops, Loop(&step),
                         _ << "`" << bound_.loops[step.op.op].second << "`: `"
                           << body_.ops[step.op.op].name << "`");
        found[step.op.op] = found[step.op.op] || loops;
      }
    }
    for (size_t o = 0; o < found.size(); ++o) {
      if (found[o] || !Told(static_cast<int>(o)) || ByPlan(static_cast<int>(o))) continue;
      const auto& [said, source] = bound_.loops[o];
      return absl::InvalidArgumentError(absl::StrCat(
          "`", source, "`: `communicate: ", said.DebugString(), "`: nothing that `",
          body_.ops[o].name, "` reads is gathered there. Split what makes it along the loop's "
          "factor, or leave it out."));
    }
    return absl::OkStatus();
  }

 private:
  // A gather before the op, or a scatter behind it.
  struct Beside {
    PlanStep* step = nullptr;
    const RelayoutStep* collective = nullptr;
    std::string tensor;
    ShardPattern pattern = ShardPattern::kBlock;
  };

  bool Told(int op) const { return !bound_.loops.empty() && !bound_.loops[op].first.empty(); }
  // The plan says it of all ops, so that it holds where it can.
  bool ByPlan(int op) const { return bound_.loops[op].second.empty(); }

  // Whether parts of a tensor are said to come in the loop over this factor.
  static bool Fetches(const LoopDirective& said, const std::string& tensor,
                      const std::string& factor) {
    for (const std::string& name : {tensor, std::string(LoopDirective::kAll)}) {
      const auto at = said.communicate.find(name);
      if (at == said.communicate.end()) continue;
      return at->second == factor || at->second == LoopDirective::kAll;
    }
    return false;
  }
  // Whether parts of the loop over this factor go from neighbour to neighbour over the axes.
  bool Turns(const LoopDirective& said, const std::string& factor,
             const std::vector<int>& axes) const {
    for (const auto& [loop, over] : said.rotate) {
      if (loop != factor && loop != LoopDirective::kAll) continue;
      return std::all_of(axes.begin(), axes.end(), [&, &over = over](int axis) {
        return std::find(over.begin(), over.end(), mesh_.root(axis)) != over.end();
      });
    }
    return false;
  }

  PlanStep* MakerOf(int value) const {
    for (PlanStep& step : *steps_) {
      if (Contains(step.outputs, value)) return &step;
    }
    return nullptr;
  }
  PlanStep* ReaderOf(int value) const {
    for (PlanStep& step : *steps_) {
      if (Contains(step.inputs, value)) return &step;
    }
    return nullptr;
  }

  // By factor the gathers that the op is told to take in part by part.
  absl::StatusOr<std::map<int, std::vector<Beside>>> GathersOf(const PlanStep& step) const {
    const LoopDirective& said = bound_.loops[step.op.op].first;
    const OpRule& rule = *step.op.rule;
    std::map<int, std::vector<Beside>> gathers;
    for (size_t i = 0; i < rule.inputs().size(); ++i) {
      const int value = step.inputs[i];
      if (value < 0 || plan_.values[value].part_of >= 0) continue;
      PlanStep* const maker = MakerOf(value);
      if (maker == nullptr || maker->loop >= 0) continue;
      const RelayoutStep* gather = OnlyCollective(*maker, CollectiveKind::kAllGather);
      if (gather == nullptr) continue;
      const int dim = DimOver(maker->relayout.source, gather->axes);
      if (dim < 0) continue;
      const RuleTensor& tensor = rule.tensors()[rule.inputs()[i]];
      const int factor = tensor.factors[dim];
      if (!Fetches(said, tensor.name, rule.factors()[factor])) continue;
      if (ByPlan(step.op.op) && !Turns(said, rule.factors()[factor], gather->axes)) continue;
      if (readers_[value] > 1) {
        if (ByPlan(step.op.op)) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(" cannot take `", tensor.name,
                         "` in part by part: others read all of it, or it is kept for the "
                         "backward pass as a whole. Leave it out."));
      }
      gathers[factor].push_back({maker, gather, tensor.name,
                                 maker->relayout.source.placements[gather->axes[0]].pattern});
    }
    return gathers;
  }

  // The sums over what is done to parts elsewhere, of which each device keeps its own part.
  std::vector<Beside> ScattersOf(const PlanStep& step, int factor, int64_t pieces) const {
    const OpRule& rule = *step.op.rule;
    std::vector<Beside> scatters;
    for (size_t i = 0; i < rule.outputs().size(); ++i) {
      const int value = step.outputs[i];
      if (readers_[value] != 1) continue;
      PlanStep* const reader = ReaderOf(value);
      if (reader == nullptr || reader->loop >= 0) continue;
      const RelayoutStep* scatter = OnlyCollective(*reader, CollectiveKind::kReduceScatter);
      if (scatter == nullptr || mesh_.SizeOf(scatter->axes) != pieces) continue;
      const RuleTensor& tensor = rule.tensors()[rule.outputs()[i]];
      const int dim = DimOver(reader->relayout.target, scatter->axes);
      if (dim < 0 || tensor.factors[dim] != factor) continue;
      scatters.push_back({reader, scatter, tensor.name});
    }
    return scatters;
  }

  // Whether the step became a loop.
  absl::StatusOr<bool> Loop(PlanStep* step) {
    const int op = step->op.op;
    ASSIGN_OR_RETURN(const auto gathers, GathersOf(*step));
    if (gathers.empty()) return false;
    const OpRule& rule = *step->op.rule;
    if (gathers.size() > 1) {
      if (ByPlan(op)) return false;
      return absl::UnimplementedError(
          " would be a loop in a loop, which is not supported yet: name tensors of one factor in "
          "`communicate`.");
    }
    const auto& [factor, beside] = *gathers.begin();
    CommLoop loop;
    loop.factor = factor;
    loop.axes = beside[0].collective->axes;
    loop.pieces = mesh_.SizeOf(loop.axes);
    loop.pattern = beside[0].pattern;
    const std::string& name = rule.factors()[factor];
    loop.turns = true;
    for (const Beside& gather : beside) {
      const int64_t parts = mesh_.SizeOf(gather.collective->axes);
      loop.turns = loop.turns && Turns(bound_.loops[op].first, name, gather.collective->axes);
      if (parts == loop.pieces) continue;
      if (ByPlan(op)) return false;
      return absl::InvalidArgumentError(absl::StrCat(
          " has ", loop.pieces, " parts of `", beside[0].tensor, "` and ", parts, " of `",
          gather.tensor, "` along `", name, "`. Cut both alike, or name one of them."));
    }
    absl::Status legal = CheckLoop(rule, factor, loop.pieces);
    if (legal.ok() && !step->op.partition.reductions.empty()) {
      legal = absl::InvalidArgumentError(" exchanges results in its midst");
    }
    if (!legal.ok()) {
      if (ByPlan(op)) return false;
      return absl::Status(legal.code(), absl::StrCat(legal.message(), ", so it is no loop over `",
                                                     name, "`. Leave `communicate` out."));
    }
    step->loop = static_cast<int>(plan_.loops.size());
    for (const Beside& gather : beside) gather.step->loop = step->loop;
    if (loop.turns) {
      for (const Beside& scatter : ScattersOf(*step, factor, loop.pieces)) {
        scatter.step->loop = step->loop;
      }
    }
    plan_.loops.push_back(std::move(loop));
    return true;
  }

  const Body& body_;
  const DeviceMesh& mesh_;
  const BoundBody& bound_;
  BodyPlan& plan_;
  std::vector<PlanStep>* steps_ = nullptr;  // the list at hand
  std::vector<int> readers_;                // per value, who keeps it among them
};

}  // namespace

absl::Status CheckLoop(const OpRule& rule, int factor, int64_t pieces) {
  if (!rule.may_cut(factor)) return absl::InvalidArgumentError(" takes it as a whole");
  ASSIGN_OR_RETURN(const DeviceMesh parts, DeviceMesh::Create({{"parts", pieces}}));
  FactorSplit split = FactorSplit::None(rule);
  split.axes[factor] = {0};
  const auto cut = PartitionOp(rule, split, parts,
                               std::vector<int64_t>(rule.factors().size(), pieces));
  if (!cut.ok()) return absl::InvalidArgumentError(" cannot be cut along it");
  for (const InnerReduction& reduction : cut->reductions) {
    if (reduction.combiner == InnerReduction::Combiner::kOnlineSoftmax) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(" needs the ", CombinerName(reduction), " of all parts before it goes on"));
  }
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    const Layout& layout = cut->tensors[t];
    if (rule.tensors()[t].role == RuleTensor::Role::kIntermediate) continue;
    if (layout.has_halo()) return absl::InvalidArgumentError(" reads beyond its part");
    const Placement& placement = layout.placements[0];
    if (placement.is_partial() && placement.reduction != Reduction::kSum) {
      return absl::InvalidArgumentError(" makes the largest of what all parts make");
    }
  }
  return absl::OkStatus();
}

absl::Status LoopOverParts(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
                           BodyPlan* plan) {
  if (bound.loops.empty()) return absl::OkStatus();
  return LoopFinder(graph, mesh, bound, plan).Run();
}

}  // namespace plancast
