#include "compiler/lower/inner_reduction.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// The factor that the recurrence of `tensor` runs along.
int ScanFactorOf(const OpRule& rule, int tensor) {
  for (const Statement& s : rule.statements()) {
    if (s.target == tensor) return s.scan.factor;
  }
  return -1;
}

}  // namespace

InnerExchange ExchangeOf(const LowerContext& context, const OpRule& rule,
                         const std::vector<int64_t>& extents, const InnerReduction& reduction) {
  const bool scan = reduction.combiner == InnerReduction::Combiner::kScan;
  InnerExchange exchange;
  double bytes = 0;
  for (const int t : reduction.tensors) {
    double elements = 1;
    for (const int f : rule.tensors()[t].factors) {
      if (!scan || f != ScanFactorOf(rule, t)) elements *= static_cast<double>(extents[f]);
    }
    bytes += elements * context.Bytes(rule.tensors()[t].dtype);
    absl::StrAppend(&exchange.names, exchange.names.empty() ? "" : "+", rule.tensors()[t].name);
  }
  exchange.comm.kind = CollectiveKind::kAllReduce;
  exchange.comm.axes = reduction.axes;
  if (scan) {
    // Every member learns decay and last state of all others.
    exchange.comm.kind = CollectiveKind::kAllGather;
    bytes *= 2 * static_cast<double>(context.mesh->SizeOf(reduction.axes));
  }
  exchange.comm.bytes = static_cast<int64_t>(std::ceil(bytes));
  return exchange;
}

}  // namespace plancast
