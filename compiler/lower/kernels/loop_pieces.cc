#include "compiler/lower/kernels/loop_pieces.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "compiler/body/partition.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

// Bytes of the results to which every part of the loop adds.
double SummedBytes(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                   int factor) {
  const OpRule& rule = *step.op.rule;
  double bytes = 0;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int tensor = i < rule.outputs().size()
                           ? rule.outputs()[i]
                           : step.op.side_outputs[i - rule.outputs().size()].tensor;
    const std::vector<int>& factors = rule.tensors()[tensor].factors;
    if (std::find(factors.begin(), factors.end(), factor) != factors.end()) continue;
    bytes += context.LocalBytes(plan.values[step.outputs[i]]);
  }
  return bytes;
}

// The most work that a rank along `axes` has, of the first and the last: with `t <= s`, one of them
// has it. `indices_of(rank, device)`.
template <typename Indices>
OpWork MostOf(const OpRule& rule, const DeviceMesh& mesh, const std::vector<int>& axes, int begin,
              int end, const Indices& indices_of) {
  OpWork most;
  double most_points = -1;
  const int64_t ranks = mesh.SizeOf(axes);
  for (const int64_t rank : {ranks - 1, int64_t{0}}) {
    int64_t device = 0, left = rank;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      device += left % mesh.size(*axis) * mesh.stride(*axis);
      left /= mesh.size(*axis);
    }
    OpWork work = WorkOf(rule, indices_of(rank, device), begin, end);
    double points = work.pointwise_ops;
    for (const Contraction& c : work.contractions) points += c.flops;
    if (points <= most_points) continue;
    most_points = points;
    most = std::move(work);
  }
  return most;
}

}  // namespace

OpWork WorkOfPiece(const LowerContext& context, const KernelPart& part,
                   const std::vector<int64_t>& local, int begin, int end) {
  const OpRule& rule = *part.step->rule;
  const CommLoop& loop = *part.loop;
  const bool anywhere =
      std::all_of(rule.statements().begin(), rule.statements().end(),
                  [](const Statement& statement) { return statement.where.empty(); });
  if (anywhere) return WorkOf(rule, local, begin, end);
  const OpNode& op = context.body().ops[part.step->op];
  const FactorSplit split = SplitFor(rule, op, context.bound->splits[part.step->op]);
  const std::vector<int64_t> extents = FactorExtents(*context.graph, op, rule);
  return MostOf(rule, *context.mesh, loop.axes, begin, end, [&](int64_t rank, int64_t device) {
    std::vector<IndexSet> sets = DeviceIndices(split, *context.mesh, extents, device);
    const int64_t at = loop.turns ? (rank + loop.pieces - part.piece) % loop.pieces : part.piece;
    sets[loop.factor] = ShardIndices(extents[loop.factor], loop.pieces, at, loop.pattern);
    return sets;
  });
}

bool CutsConditions(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh) {
  for (const Statement& statement : rule.statements()) {
    for (const Condition& condition : statement.where) {
      if (condition.is_map() || condition.is_promise()) continue;
      for (const int factor : condition.Factors()) {
        if (mesh.SizeOf(split.axes[factor]) > 1) return true;
      }
    }
  }
  return false;
}

OpWork WorkOfBusiest(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh,
                     const std::vector<int64_t>& extents, int begin, int end) {
  std::vector<int> axes;
  for (const std::vector<int>& cut : split.axes) axes.insert(axes.end(), cut.begin(), cut.end());
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return MostOf(rule, mesh, axes, begin, end, [&](int64_t, int64_t device) {
    return DeviceIndices(split, mesh, extents, device);
  });
}

std::vector<std::vector<KernelSpec>> PieceKernels(const LowerContext& context, const BodyPlan& plan,
                                                  const PlanStep& step, KernelPart part,
                                                  double extra_read_bytes,
                                                  const std::string& label) {
  const CommLoop& loop = plan.loops[step.loop];
  const double summed = SummedBytes(context, plan, step, loop.factor);
  part.loop = &loop;
  std::vector<std::vector<KernelSpec>> pieces;
  for (int64_t i = 0; i < loop.pieces; ++i) {
    part.piece = i;
    std::vector<KernelSpec> kernels = KernelsOf(context, {part}, extra_read_bytes, label);
    extra_read_bytes = 0;
    if (i > 0 && summed > 0 && !kernels.empty()) {
      if (kernels.back().family == KernelFamily::kGemm) {
        kernels.back().read_bytes += summed;
      } else {
        kernels.push_back(
            MemoryKernel(context, step.op.rule->name() + ".merge", 2 * summed, summed));
      }
    }
    pieces.push_back(std::move(kernels));
  }
  return pieces;
}

}  // namespace plancast
