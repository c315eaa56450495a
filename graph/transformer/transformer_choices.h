#ifndef PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_CHOICES_H_
#define PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_CHOICES_H_

#include <cstdint>

namespace plancast {

// What the framework and the plan decide about the graph of one model.
struct TransformerChoices {
  bool flash_attention = true;  // one attention kernel, or scores, softmax, context
  bool dropout = false;         // the model trains with dropout kernels
  int64_t vocab_multiple = 1;   // the vocabulary is padded to a multiple of this
  // Tokens' weights for their experts multiply the experts' activations, not their
  // results.
  bool experts_weigh_activations = false;
  // Above 1: experts lie on so many ranks, and where a rank has several of them,
  // kernels put tokens in their order after they have come, and back before they go.
  int64_t experts_sorted_over = 0;
  // Shared experts run while tokens are sent to theirs and come back; else behind the others.
  bool shared_experts_beside = false;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_TRANSFORMER_CHOICES_H_
