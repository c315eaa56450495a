#include "compiler/lower/kernels/loop_pieces.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "compiler/body/partition.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

// Bytes of the results to which every part of the loop adds, as they are and in fp32.
struct Summed {
  double narrow = 0, wide = 0;
};
Summed SummedBytes(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                   int factor) {
  const OpRule& rule = *step.op.rule;
  Summed bytes;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int tensor = i < rule.outputs().size()
                           ? rule.outputs()[i]
                           : step.op.side_outputs[i - rule.outputs().size()].tensor;
    const std::vector<int>& factors = rule.tensors()[tensor].factors;
    if (std::find(factors.begin(), factors.end(), factor) != factors.end()) continue;
    const double own = context.LocalBytes(plan.values[step.outputs[i]]);
    const double element = context.Bytes(rule.tensors()[tensor].dtype);
    bytes.narrow += own;
    bytes.wide += own * std::max(1.0, ElementBytes(DType::kFp32) / element);
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

// What puts the result of part `piece` to those before it.
std::vector<KernelSpec> MergesOf(const LowerContext& context, const std::string& rule,
                                 const Summed& sum, const ContextSteps& steps, int64_t piece,
                                 int64_t pieces) {
  std::vector<KernelSpec> kernels;
  const auto add = [&](const char* what, double read, double write) {
    kernels.push_back(MemoryKernel(context, rule + what, read, write));
  };
  const double kept = steps.fp32_sums ? sum.wide : sum.narrow;
  const bool casts = kept > sum.narrow;
  if (piece == 0 && casts) add(".cast", sum.narrow, kept);
  if (piece > 0) {
    add(".merge", sum.narrow + kept, kept);
    for (int i = 1; i < steps.merge_passes; ++i) kernels.push_back(kernels.back());
  }
  if (piece == pieces - 1 && casts) add(".cast", kept, sum.narrow);
  return kernels;
}

}  // namespace

bool IsContextRing(const LowerContext& context, const CommLoop& loop) {
  const auto is_cp = [&](int axis) { return context.mesh->root(axis) == "cp"; };
  return loop.turns && !loop.skewed && std::all_of(loop.axes.begin(), loop.axes.end(), is_cp);
}

double QueriesPerKey(const LowerContext& context, const PlanStep& step) {
  const OpRule& rule = *step.op.rule;
  if (rule.fused().empty()) return 1;
  const std::vector<int64_t> extents =
      FactorExtents(*context.graph, context.body().ops[step.op.op], rule);
  for (size_t f = 0; f < extents.size(); ++f) {
    if (rule.factors()[f] == "r") return static_cast<double>(extents[f]);
  }
  return 1;
}

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
  const Summed summed = SummedBytes(context, plan, step, loop.factor);
  const ContextSteps steps =
      IsContextRing(context, loop) ? context.profile->kernels.context_steps : ContextSteps();
  part.loop = &loop;
  std::vector<std::vector<KernelSpec>> pieces;
  for (int64_t i = 0; i < loop.pieces; ++i) {
    part.piece = i;
    std::vector<KernelSpec> kernels = KernelsOf(context, {part}, extra_read_bytes, label);
    extra_read_bytes = 0;
    if (summed.narrow > 0 && !kernels.empty()) {
      if (kernels.back().family == KernelFamily::kGemm) {
        if (i > 0) kernels.back().read_bytes += summed.narrow;
      } else {
        for (KernelSpec& merge :
             MergesOf(context, step.op.rule->name(), summed, steps, i, loop.pieces)) {
          kernels.push_back(std::move(merge));
        }
      }
    }
    pieces.push_back(std::move(kernels));
  }
  return pieces;
}

}  // namespace plancast
