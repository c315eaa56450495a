#include "compiler/lower_kernel.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/string_view.h"
#include "compiler/partition.h"
#include "graph/op_split.h"

namespace plancast {
namespace {

GemmPass PassOf(Part part) {
  switch (part) {
    case Part::kBackward:
      return GemmPass::kDgrad;
    case Part::kWeightGrad:
      return GemmPass::kWgrad;
    default:
      return GemmPass::kForward;
  }
}

// Products of one op that share two of m, n, k run as one wider product, as
// fused weights do (q, k and v; gate and up).
void MergeContraction(const Contraction& c, std::vector<Contraction>* merged) {
  for (Contraction& m : *merged) {
    if (m.batch != c.batch) continue;
    const bool same_m = m.m == c.m, same_n = m.n == c.n, same_k = m.k == c.k;
    if (same_m + same_n + same_k < 2) continue;
    m.flops += c.flops;
    // Equal shapes: the outputs of forward and wgrad products lie side by
    // side, the operands of a summed dgrad follow each other.
    if (!same_m) {
      m.m += c.m;
    } else if (!same_k) {
      m.k += c.k;
    } else {
      m.n += c.n;
    }
    return;
  }
  merged->push_back(c);
}

int64_t ExtentOf(const OpRule& rule, const std::vector<int64_t>& extents, absl::string_view name) {
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    if (rule.factors()[f] == name) return extents[f];
  }
  return 1;
}

// Fused attention rules name their factors b, g (kv heads), r (query heads per
// kv head), s, t (query and key positions), d and e (head sizes).
void FillAttention(const OpRule& rule, const std::vector<int64_t>& extents, KernelSpec* kernel) {
  kernel->family = KernelFamily::kAttention;
  kernel->batch = ExtentOf(rule, extents, "b");
  kernel->kv_heads = ExtentOf(rule, extents, "g");
  kernel->heads = kernel->kv_heads * ExtentOf(rule, extents, "r");
  kernel->q_len = ExtentOf(rule, extents, "s");
  kernel->kv_len = ExtentOf(rule, extents, "t");
  kernel->head_dim = ExtentOf(rule, extents, "d");
  kernel->head_dim_v = ExtentOf(rule, extents, "e");
  for (const Statement& statement : rule.statements()) {
    kernel->causal |= !statement.where.empty();
  }
}

}  // namespace

std::vector<KernelSpec> KernelsOf(const LowerContext& context, const std::vector<KernelPart>& parts,
                                  double extra_read_bytes, const std::string& label) {
  KernelSpec base;
  base.label = label;
  base.dtype = context.dtype;
  base.read_bytes = extra_read_bytes;
  std::vector<Contraction> contractions;
  double pointwise = 0;
  for (const KernelPart& part : parts) {
    const OpRule& rule = *part.step->rule;
    const OpNode& op = context.body().ops[part.step->op];
    const std::vector<int64_t> extents =
        LocalExtents(*context.graph, *context.mesh, op, context.bound->splits[part.step->op], rule);
    const OpWork work = WorkOf(rule, extents, part.begin, part.end);
    for (size_t i = 0; i < work.reads.size(); ++i) {
      if (!part.reads[work.reads[i]]) continue;
      base.read_bytes += work.read_elements[i] * context.Bytes(rule.tensors()[work.reads[i]].dtype);
    }
    for (size_t i = 0; i < work.writes.size(); ++i) {
      if (!part.writes[work.writes[i]]) continue;
      base.write_bytes +=
          work.write_elements[i] * context.Bytes(rule.tensors()[work.writes[i]].dtype);
    }
    pointwise += work.pointwise_ops;
    if (part.step->part == Part::kBackward || part.step->part == Part::kWeightGrad) {
      base.pass = PassOf(part.step->part);
    }
    if (!rule.fused().empty() && !work.contractions.empty()) {
      FillAttention(rule, extents, &base);
      base.backward = base.pass != GemmPass::kForward;
      for (const Contraction& c : work.contractions) base.flops += c.flops;
      continue;
    }
    for (const Contraction& c : work.contractions) MergeContraction(c, &contractions);
  }
  if (base.family == KernelFamily::kAttention) return {base};
  if (contractions.empty()) {
    if (base.read_bytes + base.write_bytes == 0) return {};
    base.flops = pointwise;
    return {base};
  }
  base.family = KernelFamily::kGemm;
  base.accumulate_fp32 = base.pass == GemmPass::kWgrad &&
                         context.profile->fuse_wgrad_accumulation &&
                         context.profile->grad_dtype == DType::kFp32;
  double total_flops = 0;
  for (const Contraction& c : contractions) total_flops += c.flops;
  std::vector<KernelSpec> kernels;
  for (const Contraction& c : contractions) {
    KernelSpec kernel = base;
    kernel.batch = c.batch;
    kernel.m = c.m;
    kernel.n = c.n;
    kernel.k = c.k;
    kernel.flops = c.flops;
    const double share = c.flops / total_flops;
    kernel.read_bytes = std::round(base.read_bytes * share);
    kernel.write_bytes = std::round(base.write_bytes * share);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace plancast
