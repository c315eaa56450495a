#include "compiler/lower/kernels/merged_products.h"

#include <algorithm>

namespace plancast {
namespace {

bool ShareOperand(const Product& a, const Product& b) {
  for (int t : a.operands) {
    if (std::find(b.operands.begin(), b.operands.end(), t) != b.operands.end()) return true;
  }
  return false;
}

}  // namespace

int SummedInto(const OpRule& rule, int target) {
  for (const Statement& statement : rule.statements()) {
    if (statement.value.kind() != ExprKind::kSum) continue;
    bool only_sums = true, has_target = false;
    VisitExpr(statement.value, [&](const Expr& e) {
      only_sums &= e.kind() == ExprKind::kSum ||
                   (e.kind() == ExprKind::kElement &&
                    rule.tensors()[e.tensor()].role == RuleTensor::Role::kIntermediate);
      has_target |= e.kind() == ExprKind::kElement && e.tensor() == target;
    });
    if (only_sums && has_target) return statement.target;
  }
  return target;
}

void NoteWindow(const Statement& statement, const std::vector<int64_t>& extents, Product* product) {
  for (const Condition& c : statement.where) {
    if (!c.is_map() || c.is_radix() || c.tied() < 0) continue;
    product->window = std::max<int64_t>(product->window, 1);
    product->width = extents[c.tied()];  // images are rows of columns: the last map's
    for (const AffineTerm& term : c.terms) {
      if (term.factor == c.tied()) {
        product->stride = std::max(product->stride, term.Coefficient(extents));
      } else if (term.factor >= 0) {
        product->window *= extents[term.factor];
      }
    }
  }
}

void NoteRows(const OpRule& rule, const std::vector<int64_t>& extents, Product* product) {
  if (product->size.batch <= 1 || product->grouped || product->window > 0) return;
  for (const int t : product->operands) {
    const std::vector<int>& factors = rule.tensors()[t].factors;
    if (factors.empty()) continue;
    const int64_t row = extents[factors.back()];
    product->row_multiple = std::min(product->row_multiple, row & -row);
  }
}

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

}  // namespace plancast
