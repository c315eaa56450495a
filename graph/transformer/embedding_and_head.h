#ifndef PLANCAST_GRAPH_TRANSFORMER_EMBEDDING_AND_HEAD_H_
#define PLANCAST_GRAPH_TRANSFORMER_EMBEDDING_AND_HEAD_H_

#include "graph/transformer/drawing.h"

namespace plancast {

//   tokens [scale] [positions add_positions] [types add_types] [norm] [dropout]
Body DrawEmbedding(const Drawing& drawing);
// Its ops in a body of others; returns the stream.
int DrawEmbeddingOps(const Drawing& drawing, BodyWriter& body);

//   [norm] [select] [transform transform_act transform_norm] logits [softcap] loss
//   [first_token pooler pooler_act sentence sentence_loss]
//   and of each module of multi-token prediction (multi_token.h), with the weights of `logits`,
//   mtp_N_logits [mtp_N_softcap] mtp_N_loss
Body DrawHead(const Drawing& drawing);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_EMBEDDING_AND_HEAD_H_
