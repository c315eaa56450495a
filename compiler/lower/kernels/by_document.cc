#include "compiler/lower/kernels/by_document.h"

#include <algorithm>
#include <cmath>

namespace plancast {

DocumentDeal DealOf(const PlanOptions& options) {
  DocumentDeal deal;
  deal.replicas = std::max<int64_t>(options.dp, 1);
  deal.samples = std::max<int64_t>(options.micro_batch, 1);
  deal.steps = std::max<int64_t>(options.micro_batches, 1);
  deal.ranks = std::max<int64_t>(options.cp, 1);
  if (options.cp_type == CpType::kAllGather) deal.cut = DocumentCut::kZigzag;
  if (options.cp_type == CpType::kRing) deal.cut = DocumentCut::kBlock;
  return deal;
}

void CutByDocument(const ModelGraph& graph, const DocumentDeal& deal, int64_t window,
                   KernelSpec* kernel) {
  DocumentDeal one = deal;
  one.replicas = one.samples = one.steps = 1;
  const double whole = KeysOfBusiest({graph.seq}, graph.seq, window, one);
  const double share = KeysOfBusiest(graph.documents, graph.seq, window, deal) / whole;
  kernel->flops *= share;
  if (window > 0) {
    kernel->kv_len =
        std::max<int64_t>(1, std::llround(static_cast<double>(kernel->kv_len) * share));
    return;
  }
  // Sequences as long as a document, as the mean over queries sees them; what is left of whole
  // numbers of them is made up for by the keys.
  const double q = static_cast<double>(kernel->q_len);
  const double queries = static_cast<double>(kernel->batch) * q;
  const double keys = share * (kernel->causal ? (q + 1) / 2 : static_cast<double>(kernel->kv_len));
  const double length = std::max(1.0, kernel->causal ? 2 * keys - 1 : share * q);
  kernel->batch = std::max(kernel->batch, static_cast<int64_t>(std::ceil(queries / length - 1e-9)));
  const double left = std::max(1.0, std::round(queries / static_cast<double>(kernel->batch)));
  kernel->q_len = static_cast<int64_t>(left);
  const int64_t read = std::llround(kernel->causal ? keys + (left - 1) / 2 : keys);
  kernel->kv_len = std::max<int64_t>(read, kernel->causal ? kernel->q_len : 1);
}

}  // namespace plancast
