#include "compiler/lower/lower_relayout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/int128.h"
#include "compiler/body/partition.h"
#include "compiler/lower/kernels/host_calls.h"
#include "compiler/lower/quantized.h"

namespace plancast {
namespace {

// What moves over cp where experts are spread over it too is theirs only if it has experts, and so
// is an exchange in which some axes of theirs and others take part.
Purpose PurposeOfMoved(const LowerContext& context, const TensorRef& ref, CollectiveKind kind,
                       const std::vector<int>& axes) {
  const DeviceMesh& mesh = *context.mesh;
  const Purpose usual = PurposeOfRelayout(mesh, kind, axes);
  if (ref.op >= 0) return usual;
  const std::vector<int>& dims = context.body().tensors[ref.tensor].dims;
  const bool experts = std::any_of(dims.begin(), dims.end(), [&](int dim) {
    return context.graph->dims[dim].name == "experts";
  });
  if (!experts) return PurposeOfAxes(mesh, axes) == Purpose::kCp ? Purpose::kCp : usual;
  const std::vector<int> theirs = mesh.AxesOf("ep");
  const bool between_experts =
      std::find_first_of(axes.begin(), axes.end(), theirs.begin(), theirs.end()) != axes.end();
  return kind == CollectiveKind::kAllToAll && between_experts ? Purpose::kEp : usual;
}

// How many products make a gradient that is all-reduced product by product.
int ReducedProducts(const LowerContext& context, const BodyPlan& plan, int value) {
  if (!context.profile->kernels.reduces_each_product) return 1;
  for (const PlanStep& step : plan.backward) {
    const bool makes =
        std::find(step.outputs.begin(), step.outputs.end(), value) != step.outputs.end();
    if (!makes || step.kind != PlanStep::Kind::kOp) continue;
    const OpRule& rule = *context.body().ops[step.op.op].rule;
    if (context.profile->kernels.separate_products.count(rule.name()) == 0) return 1;
    const auto sums = [](const Statement& statement) { return !statement.reduced.empty(); };
    return std::max<int>(1,
                         std::count_if(rule.statements().begin(), rule.statements().end(), sums));
  }
  return 1;
}

// Gathers or scatters of several roots: the bytes that the busiest of them receives or sends.
int64_t JoinedBytes(const LowerContext& context, const BodyPlan& plan, const PlanStep& step) {
  const int axis = step.relayout.steps[0].axes[0];
  std::map<int32_t, double> bytes;  // by root
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Value &from = plan.values[step.inputs[i]], &to = plan.values[step.outputs[i]];
    const Value& whole = from.layout.placements[axis].is_on() ? from : to;
    bytes[whole.layout.placements[axis].at] += context.LocalBytes(whole);
  }
  double most = 0;
  for (const auto& [root, own] : bytes) most = std::max(most, own);
  return static_cast<int64_t>(std::ceil(most));
}

// The steps of an exchange whose copies are gathered: both end in its layout, which between them
// nobody has, for parts of a copy lie wherever those who sent them had them.
std::vector<RelayoutStep> ThenGathered(const RelayoutStep& exchange, const std::vector<int>& copies,
                                       const DeviceMesh& mesh, const std::vector<int64_t>& shape) {
  RelayoutStep parts = exchange, gather = exchange;
  parts.axes.erase(
      std::remove_if(
          parts.axes.begin(), parts.axes.end(),
          [&](int axis) { return std::find(copies.begin(), copies.end(), axis) != copies.end(); }),
      parts.axes.end());
  gather.kind = CollectiveKind::kAllGather;
  gather.axes = copies;
  gather.elements = static_cast<int64_t>(exchange.after.LocalElements(mesh, shape));
  parts.elements = CeilDiv(gather.elements, mesh.SizeOf(copies));
  return {parts, gather};
}

// The steps of a relayout as software runs them, if these are not its own; empty: they are.
std::vector<RelayoutStep> StepsInstead(const LowerContext& context, const Relayout& relayout,
                                       const std::vector<int64_t>& shape) {
  std::vector<RelayoutStep> steps;
  if (context.profile->experts.dispatch_sends_once) return steps;
  const Layout* before = &relayout.source;
  for (size_t i = 0; i < relayout.steps.size(); ++i) {
    const RelayoutStep& step = relayout.steps[i];
    const std::vector<int> copies = AxesOfCopies(step, *before);
    before = &step.after;
    if (copies.empty()) {
      if (!steps.empty()) steps.push_back(step);
      continue;
    }
    if (steps.empty()) steps.assign(relayout.steps.begin(), relayout.steps.begin() + i);
    for (RelayoutStep& part : ThenGathered(step, copies, *context.mesh, shape)) {
      steps.push_back(std::move(part));
    }
  }
  return steps;
}

// How much of its 16 bits an exchange of context parallelism moves where attention runs in fp8.
// Transformer Engine (attention/dot_product_attention/context_parallel.py) quantises queries, keys,
// values and the gradient of the output before they leave, unless in mxfp8; what attention makes it
// writes in 8 bits with delayed scaling alone, in one launch.
double ShareForAttention(const SoftwareProfile& profile, const RelayoutStep& step,
                         const Layout& before) {
  const bool gathers = step.kind == CollectiveKind::kAllGather;
  if (profile.types.attention_dtype != DType::kFp8) return 1;
  if (!gathers && step.kind != CollectiveKind::kAllToAll) return 1;
  const auto of_positions = [&](int axis) {
    const Placement &from = before.placements[axis], &to = step.after.placements[axis];
    return from.is_shard() && (!to.is_shard() || from.dim < to.dim);
  };
  const bool comes = std::any_of(step.axes.begin(), step.axes.end(), of_positions);
  const auto how = profile.calls.quantize.find(DType::kFp8);
  const bool delayed = how != profile.calls.quantize.end() && how->second.launches == 1;
  return comes || (delayed && !gathers) ? ElementBytes(DType::kFp8) / ElementBytes(DType::kBf16)
                                        : 1;
}

}  // namespace

std::vector<int> AxesOfCopies(const RelayoutStep& step, const Layout& before) {
  std::vector<int> copies;
  if (step.kind != CollectiveKind::kAllToAll) return copies;
  for (const int axis : step.axes) {
    const Placement& from = before.placements[axis];
    const bool cut_in_the_end = std::any_of(step.axes.begin(), step.axes.end(), [&](int other) {
      const Placement& to = step.after.placements[other];
      return to.is_shard() && to.dim == from.dim;
    });
    const bool ends_in_copies = from.is_shard() && step.after.placements[axis].is_replicate();
    if (ends_in_copies && !cut_in_the_end) copies.push_back(axis);
  }
  if (copies.size() == step.axes.size()) copies.clear();
  return copies;
}

bool PartsLieApart(const DeviceMesh& mesh, const std::vector<int64_t>& shape, const Layout& cut,
                   const std::vector<int>& axes) {
  const std::vector<int64_t> local = cut.LocalShape(mesh, shape);
  for (const int axis : axes) {
    const Placement& placement = cut.placements[axis];
    if (!placement.is_shard()) continue;
    int64_t before = 1;
    for (int dim = 0; dim < placement.dim; ++dim) before *= local[dim];
    if (before > 1) return true;
  }
  return false;
}

int AddRelayout(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                double quantized_share, std::vector<int> deps, BlockBuilder* builder) {
  const Value& from = plan.values[step.inputs[0]];
  const TensorFacts facts = FactsOf(*context.graph, context.body(), from.ref);
  // An exchange takes as long as its busiest member.
  const double busiest = std::max(context.Busiest(from.ref, step.relayout.source),
                                  context.Busiest(from.ref, step.relayout.target));
  const double element = context.Bytes(facts.dtype);
  if (step.inputs.size() > 1) {
    const RelayoutStep& r = step.relayout.steps[0];
    CommSpec comm;
    comm.kind = r.kind;
    comm.axes = r.axes;
    comm.bytes = JoinedBytes(context, plan, step);
    const Purpose purpose = PurposeOfRelayout(*context.mesh, r.kind, r.axes);
    return builder->AddComm(comm, StreamOf(purpose), purpose,
                            absl::StrCat(kCollectiveKindNames[r.kind], " ", facts.name, " and ",
                                         step.inputs.size() - 1, " more"),
                            deps);
  }
  int ready = deps.empty() ? BlockBuilder::kNone : deps[0];
  Layout before = step.relayout.source;
  const std::vector<RelayoutStep> instead = StepsInstead(context, step.relayout, facts.shape);
  // What is gathered behind an exchange is not what products quantise first.
  if (!instead.empty()) quantized_share = 1;
  for (const RelayoutStep& r : instead.empty() ? step.relayout.steps : instead) {
    const Layout source = before;
    before = r.after;
    if (!r.is_collective) continue;
    const std::vector<int> axes = context.Inside(r.axes);
    const Purpose purpose = PurposeOfMoved(context, from.ref, r.kind, axes);
    const bool gathers = r.kind == CollectiveKind::kAllGather;
    const bool scatters = r.kind == CollectiveKind::kReduceScatter;
    const bool apart =
        PartsLieApart(*context.mesh, facts.shape, gathers ? source : r.after, r.axes);
    const bool copies = context.profile->kernels.first_dim_collectives && purpose == Purpose::kTp &&
                        (gathers || scatters) && apart && step.loop < 0;
    const bool exchanges = purpose == Purpose::kCp && facts.dtype == DType::kCompute;
    const double in_8_bits = exchanges ? ShareForAttention(*context.profile, r, source) : 1;
    const double share = in_8_bits < 1 ? in_8_bits : gathers ? quantized_share : 1;
    // Software that quantises an operand once for all products (host_calls.cc).
    const std::map<DType, Quantization>& quantize = context.profile->calls.quantize;
    const auto once = share < 1 && in_8_bits == 1 ? quantize.find(context.dtype) : quantize.end();
    CommSpec comm;
    comm.kind = r.kind;
    comm.axes = axes;
    // A gradient is for two products, which read a side each; an activation is for the next one.
    const int sides = QuantizedSides(context.dtype);
    const bool both = once != quantize.end() && from.ref.grad;
    const double bytes = r.elements * busiest * element * share * (both ? sides : 1);
    comm.bytes = static_cast<int64_t>(std::ceil(bytes));
    if (r.kind == CollectiveKind::kAllToAll && from.ref.op < 0 &&
        context.profile->experts.dispatch_sends_once) {
      comm.copies =
          CopiesIn(*context.graph, context.body(), context.body().tensors[from.ref.tensor],
                   context.profile->experts.deals_tokens);
      comm.sms = context.profile->experts.dispatch_sms;
    }
    if (axes.size() < r.axes.size()) {
      CommSpec left = comm;
      left.axes = {context.outside};
      builder->LeaveOutside(left);
      if (axes.empty()) continue;
    }
    const auto add = [&](const char* what, double read, double write) {
      ready = builder->AddKernel(MemoryKernel(context, what, read, write), PurposeOf(step.part),
                                 absl::StrCat(what, " ", facts.name), deps);
      deps = {ready};
    };
    if (once != quantize.end()) {
      // An activation that is gathered again for the weight gradient was quantised forward.
      const bool kept =
          !from.ref.grad && (step.part == Part::kBackward || step.part == Part::kWeightGrad);
      const double part = source.LocalElements(*context.mesh, facts.shape) * element;
      const int reads = QuantizationReads(once->second.launches);
      if (!kept) add("quantize_operand", reads * part, sides * share * part);
    } else if (share < 1 && in_8_bits == 1) {
      // The largest magnitude is looked for, then the tensor is read again.
      const double part = source.LocalElements(*context.mesh, facts.shape) * element;
      add("gather_cast", 2 * part, share * part);
    }
    const int context_copies = r.kind == CollectiveKind::kAllToAll && purpose == Purpose::kCp
                                   ? context.profile->kernels.context_copies
                                   : 0;
    for (int i = 0; i < context_copies / 2; ++i) add("copy_in", bytes, bytes);
    if (copies && scatters) add("copy_in", bytes, bytes);
    const int times = r.kind == CollectiveKind::kAllReduce && purpose == Purpose::kTp
                          ? ReducedProducts(context, plan, step.inputs[0])
                          : 1;
    // A message from rank to rank is on its way beside collectives of either.
    const bool sent = r.kind == CollectiveKind::kPermute && source.placements[r.axes[0]].is_on();
    const StreamKind stream = sent ? StreamKind::kPeerOut : StreamOf(purpose);
    for (int i = 0; i < times; ++i) {
      ready = builder->AddComm(comm, stream, purpose,
                               absl::StrCat(kCollectiveKindNames[r.kind], " ", facts.name), deps);
      deps = {ready};
      if (i > 0) add("grad_add", 2 * bytes, bytes);
    }
    if (copies && gathers) add("copy_out", bytes, bytes);
    for (int i = context_copies / 2; i < context_copies; ++i) add("copy_out", bytes, bytes);
  }
  return ready;
}

}  // namespace plancast
