#ifndef PLANCAST_COMPILER_BIND_VOCABULARY_H_
#define PLANCAST_COMPILER_BIND_VOCABULARY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/model/model_cut.h"
#include "graph/model/model_graph.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// The dim that vocabulary parallelism cuts over the stages of a pipeline.
inline constexpr absl::string_view kVocabularyDim = "vocab";

// Where the input layer of a model ends and its output layer begins: what the first module begins
// with, and the last ends with, of ops that have the vocabulary (the embedding's table; the product
// that makes logits, and the loss).
// Errors: other ops have it, or these do not; the two share their weights.
absl::StatusOr<std::vector<ModelCut>> VocabularyCuts(const ModelGraph& graph);

// What such an op is told beside all else: the pipeline's ranks cut the vocabulary.
ResolvedSplit VocabularySplit();

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BIND_VOCABULARY_H_
