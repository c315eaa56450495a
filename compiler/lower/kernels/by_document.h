#ifndef PLANCAST_COMPILER_LOWER_KERNELS_BY_DOCUMENT_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_BY_DOCUMENT_H_

#include <cstdint>

#include "graph/kernel_spec.h"
#include "graph/model/model_graph.h"
#include "graph/model/packed_documents.h"
#include "strategy/plan_options.h"

namespace plancast {

// Who gets which sequences under a plan. Rings of both halves and all-to-alls give every rank of cp
// the same of each document (Transformer Engine cuts each one in pieces, AttnFuncWithCPAndKVP2P
// with qkv_format thd); gathers cut the sequence, whatever documents it has (Llama 3,
// section 3.3.2).
DocumentDeal DealOf(const PlanOptions& options);

// Fused causal attention over whole sequences becomes that over the documents they are packed from:
// as many queries, each with the keys of its own document; the work is that of the busiest rank.
// `window`: of the rule, 0: none. What one document a sequence makes is left as it is.
void CutByDocument(const ModelGraph& graph, const DocumentDeal& deal, int64_t window,
                   KernelSpec* kernel);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_BY_DOCUMENT_H_
