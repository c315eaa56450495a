#ifndef PLANCAST_STRATEGY_FINETUNE_LORA_DIRECTIVE_H_
#define PLANCAST_STRATEGY_FINETUNE_LORA_DIRECTIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plancast {

// Low-rank adapters (LoRA, Hu et al. 2022): beside each product with a weight that `on` names
// stand two narrow products, from its input to `rank` values and from these to its outputs,
// whose sum with the frozen product goes on. Only the adapters are trained.
struct LoraDirective {
  int64_t rank = 0;
  std::vector<std::string> on;  // ends of names of ops: `qkv`, `mlp.fc1`
  double dropout = 0;           // of the adapters' inputs; 0: none
  // `nf4`: matrices of products in lists of layers below the node that are not trained rest in
  // 4 bits and are rebuilt before each product (QLoRA, Dettmers et al. 2023). Empty: they are
  // kept as they are used.
  std::string base;

  // `rank=16 on qkv+proj dropout=0.05 base=nf4`
  std::string DebugString() const;
  // Errors: a rank below 1, no ops, dropout outside [0, 1), another base.
  absl::Status Check() const;

  friend bool operator==(const LoraDirective& a, const LoraDirective& b) {
    return a.rank == b.rank && a.on == b.on && a.dropout == b.dropout && a.base == b.base;
  }
};

// Whether `on` names the op: it is the end of its name, in whole parts.
bool NamesOp(absl::string_view on, absl::string_view op);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_FINETUNE_LORA_DIRECTIVE_H_
