#ifndef PLANCAST_COMPILER_FINETUNE_ADAPTER_H_
#define PLANCAST_COMPILER_FINETUNE_ADAPTER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/model/model_graph.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// The ops of a low-rank adapter, made from the rule of the product that it stands beside:
// `linear(x, w) -> (y)`, y[b,s,n] += x[b,s,k] * w[n,k], gets
//   lora_a(x, w) -> (a): a[b,s,rank] += x[b,s,k] * w[rank,k]
//   lora_b(a, w_y) -> (y): y[b,s,n] += a[b,s,rank] * w_y[n,rank]
//   lora_add(base_y, y) -> (sum_y): sum_y[b,s,n] = base_y[b,s,n] + scale * y[b,s,n]
// Of a product with several outputs (query, key and value) lora_a is one and the others have a
// part for each output, as software has it that fuses the product. Weights of experts
// have adapters for each expert.
struct AdapterRules {
  OpRulePtr a, b, add;
  int input = 0;  // of the product's inputs, the one that is no weight
};
// Errors: the rule is no product of one activation with weights.
absl::StatusOr<AdapterRules> AdapterOf(const OpRule& product);

inline constexpr char kRankDim[] = "lora_rank";  // of the model, and its factor `rank`

struct AdapterOptions {
  int rank_dim = -1;  // into ModelGraph::dims
  bool dropout = false;
  bool trains_a = true, trains_b = true;
};

// Puts an adapter beside op `op` of the body: `NAME.lora_dropout`, `NAME.lora_a`, `NAME.lora_b`
// and `NAME.lora_add` follow it. Later ops are numbered on.
absl::Status AddAdapter(int op, const AdapterOptions& options, Body* body);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_FINETUNE_ADAPTER_H_
