#include "compiler/loops/product_loops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/body/partition.h"
#include "compiler/loops/beside.h"
#include "compiler/loops/comm_loops.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

class ProductLoops {
 public:
  ProductLoops(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
               const TpTransports& transports, BodyPlan* plan)
      : graph_(graph),
        mesh_(mesh),
        bound_(bound),
        transports_(transports),
        plan_(*plan),
        readers_(CountReaders(*plan)) {}

  void Run() {
    for (std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
      steps_ = steps;
      for (PlanStep& step : *steps) {
        if (IsProduct(step)) Loop(&step);
      }
    }
  }

 private:
  // A collective of tensor parallelism before a product or behind it, and the factor of the rule
  // that its parts are of.
  struct Beside {
    PlanStep* step = nullptr;
    std::vector<int> axes;
    int factor = -1;
    ShardPattern pattern = ShardPattern::kBlock;

    explicit operator bool() const { return step != nullptr; }
  };

  // One product of matrices for each device, or several that read one of them.
  bool IsProduct(const PlanStep& step) const {
    if (step.kind != PlanStep::Kind::kOp || step.loop >= 0) return false;
    if (step.op.part == Part::kWeightGrad || !step.op.partition.reductions.empty()) return false;
    if (!bound_.loops.empty() && !bound_.loops[step.op.op].first.empty()) return false;
    const std::vector<Contraction> products = ProductsOf(step);
    return !products.empty() && step.op.rule->fused().empty() &&
           std::all_of(products.begin(), products.end(),
                       [](const Contraction& product) { return product.batch == 1; });
  }
  std::vector<Contraction> ProductsOf(const PlanStep& step) const {
    const OpRule& rule = *step.op.rule;
    const OpNode& op = graph_.bodies[bound_.body].ops[step.op.op];
    const auto extents = LocalExtents(graph_, mesh_, op, bound_.splits[step.op.op], rule);
    const auto statements = static_cast<int>(rule.statements().size());
    return WorkOf(rule, extents, 0, statements).contractions;
  }

  bool OverTp(const std::vector<int>& axes) const {
    return std::all_of(axes.begin(), axes.end(),
                       [&](int axis) { return mesh_.root(axis) == "tp"; });
  }

  // Which part of the step's op its pass is of.
  const PartTransport& GatherFor(const PlanStep& step) const {
    static const PartTransport whole;
    if (step.op.part == Part::kBackward) return transports_.gradient_gather;
    const bool again = step.op.part == Part::kForward && bound_.replays[step.op.op];
    return again && transports_.gather.only_with_grad ? whole : transports_.gather;
  }
  const PartTransport& ScatterFor(const PlanStep& step) const {
    static const PartTransport whole;
    if (step.op.part != Part::kBackward) {
      const bool again = step.op.part == Part::kForward && bound_.replays[step.op.op];
      return again && transports_.scatter.only_with_grad ? whole : transports_.scatter;
    }
    return ProductsOf(step).size() == 1 ? transports_.gradient_scatter : whole;
  }

  // The gather that the step is the first to read.
  Beside GatherOf(const PlanStep& step) const {
    const OpRule& rule = *step.op.rule;
    for (size_t i = 0; i < rule.inputs().size(); ++i) {
      const int value = step.inputs[i];
      if (value < 0 || plan_.values[value].part_of >= 0) continue;
      PlanStep* const maker = FindMaker(steps_, value);
      if (maker == nullptr || maker->loop >= 0) continue;
      const RelayoutStep* gather = OnlyCollective(*maker, CollectiveKind::kAllGather);
      if (gather == nullptr || !OverTp(gather->axes)) continue;
      if (FindReader(steps_, value) != &step) continue;
      const Layout& parts = maker->relayout.source;
      const int dim = DimOver(parts, gather->axes);
      if (dim < 0) continue;
      return {maker, gather->axes, rule.tensors()[rule.inputs()[i]].factors[dim],
              parts.placements[gather->axes[0]].pattern};
    }
    return {};
  }

  // What sums the step's result, and nothing else reads it.
  Beside ScatterOf(const PlanStep& step) const {
    const OpRule& rule = *step.op.rule;
    for (size_t i = 0; i < rule.outputs().size(); ++i) {
      const int value = step.outputs[i];
      if (value < 0 || readers_[value] != 1) continue;
      PlanStep* const reader = FindReader(steps_, value);
      if (reader == nullptr || reader->loop >= 0) continue;
      const RelayoutStep* scatter = OnlyCollective(*reader, CollectiveKind::kReduceScatter);
      if (scatter == nullptr || !OverTp(scatter->axes)) continue;
      const Layout& parts = reader->relayout.target;
      const int dim = DimOver(parts, scatter->axes);
      if (dim < 0) continue;
      return {reader, scatter->axes, rule.tensors()[rule.outputs()[i]].factors[dim],
              parts.placements[scatter->axes[0]].pattern};
    }
    return {};
  }

  void Loop(PlanStep* step) {
    Beside gather, scatter;
    const PartTransport &comes = GatherFor(*step), &leaves = ScatterFor(*step);
    if (!comes.whole()) gather = GatherOf(*step);
    if (!leaves.whole()) scatter = ScatterOf(*step);
    // What goes on with the parts that come sends as many, if it can.
    if (gather && scatter &&
        (gather.factor != scatter.factor || leaves.way != PartTransport::Way::kCollective)) {
      scatter = {};
    }
    if (!gather && !scatter) return;
    const Beside& first = gather ? gather : scatter;
    const PartTransport& how = gather ? comes : leaves;
    CommLoop loop;
    loop.factor = first.factor;
    loop.axes = first.axes;
    loop.pattern = first.pattern;
    loop.pieces = how.pieces > 0 ? how.pieces : mesh_.SizeOf(first.axes);
    loop.turns = how.sends();
    if (loop.turns) loop.turns_over = first.axes;
    if (gather) loop.comes = comes;
    if (scatter) loop.leaves = leaves;
    if (loop.pieces < 2 || !Divides(*step, loop) ||
        !CheckLoop(*step->op.rule, loop.factor, loop.pieces).ok()) {
      return;
    }
    step->loop = static_cast<int>(plan_.loops.size());
    if (gather) gather.step->loop = step->loop;
    if (gather) gather.step->into_loop = true;
    if (scatter) scatter.step->loop = step->loop;
    plan_.loops.push_back(std::move(loop));
  }

  bool Divides(const PlanStep& step, const CommLoop& loop) const {
    const OpNode& op = graph_.bodies[bound_.body].ops[step.op.op];
    const int64_t size =
        LocalExtents(graph_, mesh_, op, bound_.splits[step.op.op], *step.op.rule)[loop.factor];
    return size % loop.pieces == 0;
  }

  const ModelGraph& graph_;
  const DeviceMesh& mesh_;
  const BoundBody& bound_;
  const TpTransports& transports_;
  BodyPlan& plan_;
  const std::vector<int> readers_;
  std::vector<PlanStep>* steps_ = nullptr;
};

}  // namespace

void LoopOverProducts(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
                      const TpTransports& transports, BodyPlan* plan) {
  ProductLoops(graph, mesh, bound, transports, plan).Run();
}

}  // namespace plancast
