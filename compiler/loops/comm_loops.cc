#include "compiler/loops/comm_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/body/partition.h"
#include "compiler/loops/beside.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

class LoopFinder {
 public:
  LoopFinder(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
             BodyPlan* plan)
      : graph_(graph),
        body_(graph.bodies[bound.body]),
        mesh_(mesh),
        bound_(bound),
        plan_(*plan),
        readers_(CountReaders(*plan)) {}

  absl::Status Run() {
    for (std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
      steps_ = steps;
      for (PlanStep& step : *steps) {
        if (step.kind != PlanStep::Kind::kOp || !Told(step.op.op)) continue;
        RETURN_IF_ERROR(Loop(&step)) << "`" << bound_.loops[step.op.op].second << "`: `"
                                     << body_.ops[step.op.op].name << "`";
      }
    }
    return absl::OkStatus();
  }

 private:
  // A collective before the op or behind it.
  struct Beside {
    PlanStep* step = nullptr;
    const RelayoutStep* collective = nullptr;
    std::string tensor;
    ShardPattern pattern = ShardPattern::kBlock;
  };

  bool Told(int op) const { return !bound_.loops.empty() && !bound_.loops[op].first.empty(); }
  // It is said of all tensors, so that it holds where it can.
  bool WhereItCan(int op) const {
    return bound_.loops[op].first.communicate.count(LoopDirective::kAll) > 0;
  }

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

  // By factor the gathers that the op is told to take in part by part.
  absl::StatusOr<std::map<int, std::vector<Beside>>> GathersOf(const PlanStep& step) const {
    const LoopDirective& said = bound_.loops[step.op.op].first;
    const OpRule& rule = *step.op.rule;
    std::map<int, std::vector<Beside>> gathers;
    for (size_t i = 0; i < rule.inputs().size(); ++i) {
      const int value = step.inputs[i];
      if (value < 0 || plan_.values[value].part_of >= 0) continue;
      PlanStep* const maker = FindMaker(steps_, value);
      if (maker == nullptr || maker->loop >= 0) continue;
      const RuleTensor& tensor = rule.tensors()[rule.inputs()[i]];
      if (const RelayoutStep* exchange = OnlyCollective(*maker, CollectiveKind::kAllToAll)) {
        const int factor = PieceFactor(said, rule, tensor);
        if (factor >= 0) gathers[factor].push_back({maker, exchange, tensor.name});
        continue;
      }
      const RelayoutStep* gather = OnlyCollective(*maker, CollectiveKind::kAllGather);
      if (gather == nullptr) continue;
      const int dim = DimOver(maker->relayout.source, gather->axes);
      if (dim < 0) continue;
      const int factor = tensor.factors[dim];
      if (!Fetches(said, tensor.name, rule.factors()[factor])) continue;
      const bool turns = Turns(said, rule.factors()[factor], gather->axes);
      if (WhereItCan(step.op.op) && !said.rotate.empty() && !turns) continue;
      if (readers_[value] > 1) {
        if (WhereItCan(step.op.op)) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(" cannot take `", tensor.name,
                         "` in part by part: others read all of it, or it is kept for the "
                         "backward pass as a whole. Leave it out."));
      }
      gathers[factor].push_back(
          {maker, gather, tensor.name, maker->relayout.source.placements[gather->axes[0]].pattern});
    }
    return gathers;
  }

  // The sums over what is done to parts elsewhere, of which each device keeps its own part.
  std::vector<Beside> ScattersOf(const PlanStep& step, const CommLoop& loop) const {
    const OpRule& rule = *step.op.rule;
    std::vector<Beside> scatters;
    for (size_t i = 0; i < rule.outputs().size(); ++i) {
      const int value = step.outputs[i];
      if (readers_[value] != 1) continue;
      PlanStep* const reader = FindReader(steps_, value);
      if (reader == nullptr || reader->loop >= 0) continue;
      const RelayoutStep* scatter = OnlyCollective(*reader, CollectiveKind::kReduceScatter);
      if (scatter == nullptr || scatter->axes != loop.turns_over) continue;
      const RuleTensor& tensor = rule.tensors()[rule.outputs()[i]];
      const int dim = DimOver(reader->relayout.target, scatter->axes);
      if (dim < 0 || tensor.factors[dim] != loop.factor) continue;
      scatters.push_back({reader, scatter, tensor.name});
    }
    return scatters;
  }

  // The collectives behind the op that are said to leave in as many parts as it runs in.
  std::map<int, std::vector<Beside>> SendsOf(const PlanStep& step) const {
    const LoopDirective& said = bound_.loops[step.op.op].first;
    const OpRule& rule = *step.op.rule;
    std::map<int, std::vector<Beside>> sends;
    for (size_t i = 0; i < rule.outputs().size() && !said.pieces.empty(); ++i) {
      const int value = step.outputs[i];
      if (readers_[value] != 1) continue;
      PlanStep* const reader = FindReader(steps_, value);
      if (reader == nullptr || reader->loop >= 0) continue;
      const RelayoutStep* send = nullptr;
      for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
                                        CollectiveKind::kAllToAll}) {
        if (send == nullptr) send = OnlyCollective(*reader, kind);
      }
      if (send == nullptr) continue;
      const RuleTensor& tensor = rule.tensors()[rule.outputs()[i]];
      const int factor = PieceFactor(said, rule, tensor);
      if (factor >= 0) sends[factor].push_back({reader, send, tensor.name});
    }
    return sends;
  }

  // The first factor of the tensor over which its parts come or go in pieces of what each device
  // has; -1: none.
  static int PieceFactor(const LoopDirective& said, const OpRule& rule, const RuleTensor& tensor) {
    for (const int factor : tensor.factors) {
      const std::string& name = rule.factors()[factor];
      if (PiecesOf(said, name) > 0 && Fetches(said, tensor.name, name)) return factor;
    }
    return -1;
  }

  // In how many parts of its own a device goes over the factor; 0: nothing is said.
  static int64_t PiecesOf(const LoopDirective& said, const std::string& factor) {
    for (const std::string& name : {factor, std::string(LoopDirective::kAll)}) {
      const auto found = said.pieces.find(name);
      if (found != said.pieces.end()) return found->second;
    }
    return 0;
  }

  absl::Status Loop(PlanStep* step) {
    const int op = step->op.op;
    const OpRule& rule = *step->op.rule;
    ASSIGN_OR_RETURN(auto besides, GathersOf(*step));
    for (auto& [factor, sends] : SendsOf(*step)) {
      std::vector<Beside>& all = besides[factor];
      all.insert(all.end(), sends.begin(), sends.end());
    }
    if (besides.empty()) return absl::OkStatus();
    if (besides.size() > 1) {
      if (WhereItCan(op)) return absl::OkStatus();
      return absl::UnimplementedError(
          " would be a loop in a loop, which is not supported yet: name tensors of one factor in "
          "`communicate`.");
    }
    const auto& [factor, beside] = *besides.begin();
    absl::StatusOr<CommLoop> loop = LoopOver(*step, factor, beside);
    if (loop.ok()) {
      absl::Status legal = CheckLoop(rule, factor, loop->pieces);
      if (legal.ok() && !step->op.partition.reductions.empty()) {
        legal = absl::InvalidArgumentError(" exchanges results in its midst");
      }
      if (!legal.ok()) {
        loop = absl::Status(legal.code(),
                            absl::StrCat(legal.message(), ", so it is no loop over `",
                                         rule.factors()[factor], "`. Leave `communicate` out."));
      }
    }
    if (!loop.ok()) return WhereItCan(op) ? absl::OkStatus() : loop.status();
    step->loop = static_cast<int>(plan_.loops.size());
    for (const Beside& each : beside) {
      each.step->loop = step->loop;
      each.step->into_loop = Contains(step->inputs, each.step->outputs[0]);
    }
    if (loop->turns && !loop->skewed) {
      for (const Beside& scatter : ScattersOf(*step, *loop)) {
        scatter.step->loop = step->loop;
      }
    }
    plan_.loops.push_back(*std::move(loop));
    return absl::OkStatus();
  }

  // Errors: parts that are not as many of each tensor, or pieces that do not divide.
  absl::StatusOr<CommLoop> LoopOver(const PlanStep& step, int factor,
                                    const std::vector<Beside>& beside) const {
    const LoopDirective& said = bound_.loops[step.op.op].first;
    const OpRule& rule = *step.op.rule;
    const std::string& name = rule.factors()[factor];
    CommLoop loop;
    loop.factor = factor;
    loop.axes = beside[0].collective->axes;
    loop.pieces = PiecesOf(said, name);
    loop.in_parts = loop.pieces > 0;
    if (loop.in_parts) {
      const int64_t size = LocalExtents(graph_, mesh_, body_.ops[step.op.op],
                                        bound_.splits[step.op.op], rule)[factor];
      if (size % loop.pieces == 0) return loop;
      return absl::InvalidArgumentError(absl::StrCat(" has ", size, " of `", name,
                                                     "` on a device, which do not divide into ",
                                                     loop.pieces, " pieces. Give a divisor."));
    }
    loop.pieces = mesh_.SizeOf(loop.axes);
    loop.pattern = beside[0].pattern;
    for (const Beside& gather : beside) {
      const std::vector<int>& axes = gather.collective->axes;
      const int64_t parts = mesh_.SizeOf(axes);
      if (Turns(said, name, axes)) {
        loop.skewed = loop.skewed || (loop.turns && axes != loop.turns_over);
        if (!loop.turns) loop.axes = axes;
        loop.turns = true;
        for (const int axis : axes) {
          if (!Contains(loop.turns_over, axis)) loop.turns_over.push_back(axis);
        }
      }
      if (parts == loop.pieces) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          " has ", loop.pieces, " parts of `", beside[0].tensor, "` and ", parts, " of `",
          gather.tensor, "` along `", name, "`. Cut both alike, or name one of them."));
    }
    return loop;
  }

  const ModelGraph& graph_;
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
  for (const Statement& statement : rule.statements()) {
    for (const Condition& condition : statement.where) {
      if (!condition.is_map() || !condition.Mentions(factor)) continue;
      return absl::InvalidArgumentError(" reads beyond its part");
    }
  }
  ASSIGN_OR_RETURN(const DeviceMesh parts, DeviceMesh::Create({{"parts", pieces}}));
  FactorSplit split = FactorSplit::None(rule);
  split.axes[factor] = {0};
  const auto cut =
      PartitionOp(rule, split, parts, std::vector<int64_t>(rule.factors().size(), pieces));
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

std::set<int> OpsInParts(const BodyPlan& plan) {
  std::set<int> ops;
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      if (step.loop >= 0 && step.kind == PlanStep::Kind::kOp) ops.insert(step.op.op);
    }
  }
  return ops;
}

absl::Status LoopOverParts(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
                           BodyPlan* plan) {
  if (bound.loops.empty()) return absl::OkStatus();
  return LoopFinder(graph, mesh, bound, plan).Run();
}

}  // namespace plancast
