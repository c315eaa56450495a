#ifndef PLANCAST_GRAPH_TRANSFORMER_EXPERTS_H_
#define PLANCAST_GRAPH_TRANSFORMER_EXPERTS_H_

#include "graph/transformer/drawing.h"

namespace plancast {

// A feed-forward layer of experts, from the normalised stream to its result:
//
//   mlp.router mlp.scores mlp.gate mlp.dispatch mlp.experts.fc1 mlp.experts.act
//   mlp.experts.fc2 [mlp.experts.fc2_bias] mlp.combine
//   [mlp.shared.fc1 mlp.shared.act mlp.shared.fc2 [mlp.shared.gate mlp.shared.scale]
//   mlp.join]
//
// Which expert a token visits is fed in: `chosen_experts` [batch, seq, topk] and
// `expert_tokens` [batch, experts, slots], the token in each place of an expert.
int DrawExperts(const Drawing& drawing, BodyWriter& body, int x);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_EXPERTS_H_
