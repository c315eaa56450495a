#include "compiler/data_ranks.h"

#include <algorithm>
#include <vector>

#include "cluster/device_mesh.h"
#include "graph/model/model_graph.h"

namespace plancast {
namespace {

bool TalksOver(const std::vector<int>& axes, const BlockTemplate& block) {
  return std::any_of(block.comms.begin(), block.comms.end(), [&](const CommSpec& comm) {
    return std::find_first_of(comm.axes.begin(), comm.axes.end(), axes.begin(), axes.end()) !=
           comm.axes.end();
  });
}

// Whether all devices work on the same samples.
bool RunsWholeBatch(const OpNode& op, const FactorSplit& split, int batch, int axis) {
  for (size_t f = 0; f < op.factor_dims.size(); ++f) {
    const std::vector<int>& axes = split.axes[f];
    if (op.factor_dims[f] == batch && std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool DependsOnDataRanks(const BoundModel& bound, const BoundBody& body, const BodyPlan& plan,
                        const BodyBlocks& blocks) {
  const auto dp = bound.mesh.FindAxis("dp");
  const auto batch = bound.graph.FindDim("batch");
  if (!dp.ok() || !batch.ok()) return true;
  for (const BlockTemplate* block : {&blocks.forward, &blocks.backward, &blocks.weights}) {
    if (TalksOver({*dp}, *block)) return true;
  }
  const Body& written = bound.graph.bodies[body.body];
  for (size_t o = 0; o < written.ops.size(); ++o) {
    if (RunsWholeBatch(written.ops[o], body.splits[o], *batch, *dp)) return true;
  }
  std::vector<MeshAxis> axes = bound.mesh.axes();
  axes[*dp].size *= 2;
  const auto twice = DeviceMesh::Create(axes);
  if (!twice.ok()) return true;
  const ModelGraph graph = bound.graph.WithBatch(2 * bound.graph.dims[*batch].size, axes[*dp].size);
  return std::any_of(plan.values.begin(), plan.values.end(), [&](const Value& value) {
    const Layout layout = value.layout.WithoutHalos();
    return layout.LocalElements(bound.mesh, FactsOf(bound.graph, written, value.ref).shape) !=
           layout.LocalElements(*twice, FactsOf(graph, written, value.ref).shape);
  });
}

}  // namespace plancast
