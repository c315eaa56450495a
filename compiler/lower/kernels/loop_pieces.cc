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

// How much further on a mesh part `part` of what axes cut is than the first.
int64_t OffsetOf(const DeviceMesh& mesh, const std::vector<int>& axes, int64_t part) {
  int64_t device = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    device += part % mesh.size(*axis) * mesh.stride(*axis);
    part /= mesh.size(*axis);
  }
  return device;
}

// The part of what axes cut that a device has.
int64_t PartOf(const DeviceMesh& mesh, const std::vector<int>& axes, int64_t device) {
  int64_t part = 0;
  for (const int axis : axes) part = part * mesh.size(axis) + mesh.Coordinate(device, axis);
  return part;
}

// A condition on positions, which parts of its factors meet unlike often.
bool IsUneven(const Condition& condition) { return !condition.is_map() && !condition.is_promise(); }

// Devices one of which has the most to do where conditions (`t <= s`) bind factors: each of these
// is at its last part, at the last that is not short or at its first; all others at the first, and
// so is factor `but`.
std::vector<int64_t> Candidates(const OpRule& rule, const FactorSplit& split,
                                const DeviceMesh& mesh, const std::vector<int64_t>& extents,
                                int but = -1) {
  std::vector<bool> bound(extents.size());
  for (const Statement& statement : rule.statements()) {
    for (const Condition& condition : statement.where) {
      if (!IsUneven(condition)) continue;
      for (const int factor : condition.Factors()) bound[factor] = factor != but;
    }
  }
  std::vector<int64_t> devices = {0};
  for (size_t f = 0; f < extents.size(); ++f) {
    const std::vector<int>& axes = split.axes[f];
    const int64_t parts = mesh.SizeOf(axes);
    if (!bound[f] || parts == 1) continue;
    const int64_t size = (extents[f] + parts - 1) / parts;
    std::vector<int64_t> those = {(extents[f] - 1) / size, extents[f] / size - 1, 0};
    those.erase(std::unique(those.begin(), those.end()), those.end());
    std::vector<int64_t> grown;
    for (const int64_t part : those) {
      for (const int64_t device : devices) grown.push_back(device + OffsetOf(mesh, axes, part));
    }
    devices = std::move(grown);
  }
  return devices;
}

// The most work that one of the devices has. `indices_of(device)`.
template <typename Indices>
OpWork MostOf(const OpRule& rule, const std::vector<int64_t>& devices, int begin, int end,
              const Indices& indices_of) {
  OpWork most;
  double most_points = -1;
  for (const int64_t device : devices) {
    OpWork work = WorkOf(rule, indices_of(device), begin, end);
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
  std::vector<int64_t> devices = Candidates(rule, split, *context.mesh, extents, loop.factor);
  const int64_t last = OffsetOf(*context.mesh, loop.axes, context.mesh->SizeOf(loop.axes) - 1);
  const auto is_first = [&](int64_t device) {
    return PartOf(*context.mesh, loop.axes, device) == 0;
  };
  // Nothing but the loop's own factor is cut along its axes.
  if (std::all_of(devices.begin(), devices.end(), is_first)) {
    const std::vector<int64_t> firsts = devices;
    for (int64_t& device : devices) device += last;
    devices.insert(devices.end(), firsts.begin(), firsts.end());
  }
  return MostOf(rule, devices, begin, end, [&](int64_t device) {
    std::vector<IndexSet> sets = DeviceIndices(split, *context.mesh, extents, device);
    const int64_t rank = PartOf(*context.mesh, loop.axes, device);
    const int64_t at = loop.turns ? (rank + loop.pieces - part.piece) % loop.pieces : part.piece;
    sets[loop.factor] = ShardIndices(extents[loop.factor], loop.pieces, at, loop.pattern);
    return sets;
  });
}

bool CutsConditions(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh) {
  for (const Statement& statement : rule.statements()) {
    for (const Condition& condition : statement.where) {
      if (!IsUneven(condition)) continue;
      for (const int factor : condition.Factors()) {
        if (mesh.SizeOf(split.axes[factor]) > 1) return true;
      }
    }
  }
  return false;
}

OpWork WorkOfBusiest(const OpRule& rule, const FactorSplit& split, const DeviceMesh& mesh,
                     const std::vector<int64_t>& extents, int begin, int end) {
  return MostOf(rule, Candidates(rule, split, mesh, extents), begin, end,
                [&](int64_t device) { return DeviceIndices(split, mesh, extents, device); });
}

std::vector<std::vector<KernelSpec>> PieceKernels(const LowerContext& context, const BodyPlan& plan,
                                                  const PlanStep& step, KernelPart part,
                                                  double extra_read_bytes,
                                                  const std::string& label) {
  const CommLoop& loop = plan.loops[step.loop];
  const Summed summed = SummedBytes(context, plan, step, loop.factor);
  const ContextSteps steps =
      IsContextRing(context, loop) ? context.profile->kernels.context_steps : ContextSteps();
  // Products beside collectives of tensor parallelism, on streams of the software's.
  const bool fills = context.profile->kernels.tp_transports.streams > 1 &&
                     !(loop.comes.whole() && loop.leaves.whole());
  part.loop = &loop;
  std::vector<std::vector<KernelSpec>> pieces;
  for (int64_t i = 0; i < loop.pieces; ++i) {
    part.piece = i;
    std::vector<KernelSpec> kernels = KernelsOf(context, {part}, extra_read_bytes, label);
    extra_read_bytes = 0;
    for (KernelSpec& kernel : kernels) {
      if (fills && kernel.family == KernelFamily::kGemm) kernel.alike = loop.pieces;
    }
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
