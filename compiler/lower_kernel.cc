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

// A matrix product with what tells whether two of them run as one.
struct Product {
  Contraction size;
  int target = -1;
  std::vector<int> operands;  // tensors
  std::vector<int> reduced;   // factors
};

// The tensor that only adds `target` to others (the parts of an input gradient
// that several weights contribute to), or `target` itself.
int SummedInto(const OpRule& rule, int target) {
  for (const Statement& statement : rule.statements()) {
    if (statement.value.kind() != ExprKind::kSum) continue;
    bool only_sums = true, has_target = false;
    VisitExpr(statement.value, [&](const Expr& e) {
      only_sums &= e.kind() == ExprKind::kSum || e.kind() == ExprKind::kElement;
      has_target |= e.kind() == ExprKind::kElement && e.tensor() == target;
    });
    if (only_sums && has_target) return statement.target;
  }
  return target;
}

bool ShareOperand(const Product& a, const Product& b) {
  for (int t : a.operands) {
    if (std::find(b.operands.begin(), b.operands.end(), t) != b.operands.end()) return true;
  }
  return false;
}

// Products of one op run as one wider product where fused weights make them
// so: those summed into one target follow each other along k (dgrad of q, k and
// v); those of one operand over the same reduced factors lie side by side
// (forward and wgrad of q, k and v, of gate and up).
void MergeProduct(const Product& p, GemmPass pass, std::vector<Product>* merged) {
  for (Product& m : *merged) {
    if (m.size.batch != p.size.batch) continue;
    if (m.target == p.target && m.size.m == p.size.m && m.size.n == p.size.n) {
      m.size.k += p.size.k;
    } else if (m.target != p.target && m.reduced == p.reduced && ShareOperand(m, p)) {
      const bool rows = pass == GemmPass::kWgrad;  // the weight's rows differ, its columns not
      if (rows && m.size.n == p.size.n) {
        m.size.m += p.size.m;
      } else if (!rows && m.size.m == p.size.m) {
        m.size.n += p.size.n;
      } else {
        continue;
      }
    } else {
      continue;
    }
    m.size.flops += p.size.flops;
    return;
  }
  merged->push_back(p);
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
  std::vector<Product> products;
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
    for (const Contraction& c : work.contractions) {
      const Statement& statement = rule.statements()[c.statement];
      Product product{c, SummedInto(rule, statement.target), TensorsOf(statement.value),
                      statement.reduced};
      std::sort(product.reduced.begin(), product.reduced.end());
      MergeProduct(product, base.pass, &products);
    }
  }
  if (base.family == KernelFamily::kAttention) return {base};
  if (products.empty()) {
    if (base.read_bytes + base.write_bytes == 0) return {};
    base.flops = pointwise;
    return {base};
  }
  base.family = KernelFamily::kGemm;
  base.accumulate_fp32 = base.pass == GemmPass::kWgrad &&
                         context.profile->fuse_wgrad_accumulation &&
                         context.profile->grad_dtype == DType::kFp32;
  double total_flops = 0;
  for (const Product& p : products) total_flops += p.size.flops;
  std::vector<KernelSpec> kernels;
  for (const Product& product : products) {
    const Contraction& c = product.size;
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
