#include "compiler/lower/sparse_update.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/body/partition.h"
#include "strategy/profile/update_bytes.h"

namespace plancast {
namespace {

constexpr double kIndexBytes = 8;

// What an op looks up on this device: rows, and elements of each; and rows of its table there.
struct LookUps {
  double rows = 1, width = 1, table_rows = 1;
};

// `gradient`: the table's, a tensor of the op's rule; `whole`: its shape on all devices. An index
// goes over all points of its own factors; the factor that no operand has is what it picks from, of
// which a device that has a part finds its share.
LookUps LookUpsOf(const LowerContext& context, const PlanStep& step, int gradient,
                  const std::vector<int64_t>& whole) {
  const OpRule& rule = *step.op.rule;
  const std::vector<int64_t> extents =
      LocalExtents(*context.graph, *context.mesh, context.body().ops[step.op.op],
                   context.bound->splits[step.op.op], rule);
  std::vector<bool> indexed(extents.size(), false), read(extents.size(), false);
  for (const int t : rule.inputs()) {
    for (const int factor : rule.tensors()[t].factors) {
      read[factor] = true;
      if (rule.tensors()[t].dtype == DType::kInt64) indexed[factor] = true;
    }
  }
  LookUps found;
  for (size_t f = 0; f < extents.size(); ++f) {
    if (indexed[f]) found.rows *= static_cast<double>(extents[f]);
  }
  const std::vector<int>& table = rule.tensors()[gradient].factors;
  for (size_t d = 0; d < table.size(); ++d) {
    const double extent = static_cast<double>(extents[table[d]]);
    const bool of_row = read[table[d]] && !indexed[table[d]];
    (of_row ? found.width : found.table_rows) *= extent;
    if (!read[table[d]]) found.rows *= extent / static_cast<double>(whole[d]);
  }
  found.rows = std::ceil(found.rows);
  return found;
}

}  // namespace

void LowerSparseUpdate(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                       int value, int ready, BlockBuilder* builder) {
  const OpNode& op = context.body().ops[step.op.op];
  const Value& gradient = plan.values[value];
  const DeviceMesh& mesh = *context.mesh;
  const TensorFacts facts = FactsOf(*context.graph, context.body(), gradient.ref);
  const size_t output =
      std::find(step.outputs.begin(), step.outputs.end(), value) - step.outputs.begin();
  const auto [rows, width, table_rows] =
      LookUpsOf(context, step, step.op.rule->outputs()[output], facts.shape);
  const SoftwareProfile& profile = *context.profile;
  const double element = context.Bytes(DType::kCompute);
  const double row_bytes = width * element + kIndexBytes;
  const std::string name = absl::StrCat(op.name, ".rows");
  ready = builder->AddKernel(MemoryKernel(context, "sparse_rows", 0, rows * row_bytes),
                             Purpose::kBackward, name, {ready});
  const uint16_t gathered = builder->AddTensor(name);
  const auto bytes = [&](double of) { return static_cast<int64_t>(std::ceil(of * row_bytes)); };
  builder->AddMemory(ready, false, MemoryKind::kGradients, gathered, bytes(rows));
  double all = rows;
  CommSpec comm;
  comm.kind = CollectiveKind::kAllGather;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (!gradient.layout.placements[a].is_partial() || mesh.size(a) == 1) continue;
    comm.axes.push_back(a);
    all *= static_cast<double>(mesh.size(a));
  }
  if (!comm.axes.empty()) {
    comm.bytes = bytes(all);
    ready = builder->AddComm(comm, StreamKind::kModelComm, PurposeOfAxes(mesh, comm.axes),
                             absl::StrCat("all_gather ", name), {ready});
    builder->AddMemory(ready, false, MemoryKind::kGradients, gathered, bytes(all) - bytes(rows));
  }
  // Equal rows are added up, so that no more than the table's are updated.
  const double updated = std::min(all, table_rows) * width;
  const UpdateBytes each = UpdateBytesOf(profile, context.dtype);
  const int moments = Moments(profile.update.type);
  const double kept =
      each.weight + (moments > 0 ? each.first : 0) + (moments > 1 ? each.second : 0);
  KernelSpec update =
      MemoryKernel(context, "sparse_update", all * row_bytes + updated * (kept + each.rest),
                   updated * (kept + each.copy));
  update.family = KernelFamily::kOptimizer;
  ready =
      builder->AddKernel(update, Purpose::kOptimizer, absl::StrCat(op.name, ".update"), {ready});
  builder->AddMemory(ready, true, MemoryKind::kGradients, gathered, -bytes(all));
}

}  // namespace plancast
