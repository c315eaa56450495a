#include "compiler/body/partition.h"

#include "base/status_macros.h"

namespace plancast {
namespace {

// Position of each factor of `rule` among the op's own factors, or -1.
std::vector<int> FactorMap(const OpRule& rule, const OpNode& op) {
  std::vector<int> map(rule.factors().size(), -1);
  for (size_t f = 0; f < map.size(); ++f) {
    for (size_t g = 0; g < op.rule->factors().size(); ++g) {
      if (rule.factors()[f] == op.rule->factors()[g]) map[f] = static_cast<int>(g);
    }
  }
  return map;
}

}  // namespace

FactorSplit SplitFor(const OpRule& rule, const OpNode& op, const FactorSplit& split) {
  if (&rule == op.rule.get()) return split;
  FactorSplit mapped = FactorSplit::None(rule);
  const std::vector<int> map = FactorMap(rule, op);
  for (size_t f = 0; f < map.size(); ++f) {
    if (map[f] >= 0) mapped.axes[f] = split.axes[map[f]];
  }
  if (split.patterns.empty()) return mapped;
  for (size_t f = 0; f < map.size(); ++f) {
    mapped.patterns.push_back(map[f] < 0 ? ShardPattern::kBlock : split.patterns[map[f]]);
  }
  return mapped;
}

std::vector<int64_t> FactorExtents(const ModelGraph& graph, const OpNode& op, const OpRule& rule) {
  const std::vector<int> map = FactorMap(rule, op);
  std::vector<int64_t> extents(map.size(), 1);
  for (size_t f = 0; f < map.size(); ++f) {
    if (map[f] >= 0 && op.factor_dims[map[f]] >= 0) {
      extents[f] = graph.dims[op.factor_dims[map[f]]].size;
    }
  }
  return extents;
}

std::vector<int64_t> LocalExtents(const ModelGraph& graph, const DeviceMesh& mesh, const OpNode& op,
                                  const FactorSplit& split, const OpRule& rule) {
  std::vector<int64_t> extents = FactorExtents(graph, op, rule);
  const FactorSplit mapped = SplitFor(rule, op, split);
  for (size_t f = 0; f < extents.size(); ++f) {
    const int64_t parts = mesh.SizeOf(mapped.axes[f]);
    extents[f] = (extents[f] + parts - 1) / parts;
  }
  return extents;
}

absl::StatusOr<DifferentiatedBody> PartitionBody(const ModelGraph& graph, const DeviceMesh& mesh,
                                                 const BoundBody& bound, DifferentiatedBody body) {
  for (std::vector<OpStep>* steps : {&body.forward, &body.backward}) {
    for (OpStep& step : *steps) {
      const OpNode& op = graph.bodies[bound.body].ops[step.op];
      ASSIGN_OR_RETURN(step.partition,
                       PartitionOp(*step.rule, SplitFor(*step.rule, op, bound.splits[step.op]),
                                   mesh, FactorExtents(graph, op, *step.rule)),
                       _ << "`" << op.name << "`");
      for (const auto& [axis, coordinate] : bound.OnOf(step.op)) {
        for (Layout& layout : step.partition.tensors) {
          layout.placements[axis] = Placement::On(coordinate);
        }
      }
    }
  }
  return body;
}

}  // namespace plancast
