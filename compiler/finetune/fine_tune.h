#ifndef PLANCAST_COMPILER_FINETUNE_FINE_TUNE_H_
#define PLANCAST_COMPILER_FINETUNE_FINE_TUNE_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/model/model_graph.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// The model as a strategy trains it: parameters of nodes with `train: false` are frozen, products
// that `lora` names have adapters beside them (adapter.h), and where nothing before is trained
// no gradient goes (graph/model/trained.h). Layers that differ are segments of their own.
// Errors: nothing that is trained, adapters of what is no product, ops that the model lacks, a
// weight with two homes that is trained in one only.
absl::StatusOr<ModelGraph> FineTuned(const ModelGraph& graph, const StrategyTree& tree);

// All that FineTuned depends on of the tree; empty: it changes nothing.
std::string FineTuneKey(const StrategyTree& tree);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_FINETUNE_FINE_TUNE_H_
