#ifndef PLANCAST_GRAPH_TRANSFORMER_FEED_FORWARD_H_
#define PLANCAST_GRAPH_TRANSFORMER_FEED_FORWARD_H_

#include "absl/strings/string_view.h"
#include "graph/transformer/drawing.h"

namespace plancast {

// `PREFIX.fc1 [PREFIX.fc1_bias] PREFIX.act PREFIX.fc2` of width `ffn`, a dim; the
// bias of fc2 is not added yet. Bias and activation carry the fusion label
// `bias_gelu`.
int DrawFeedForward(const Drawing& drawing, BodyWriter& body, absl::string_view prefix,
                    absl::string_view ffn, int x);

// The same in two, where ops of others stand between: up to the activation, and what follows it.
int DrawUpToActivation(const Drawing& drawing, BodyWriter& body, absl::string_view prefix,
                       absl::string_view ffn, int x);
int DrawBehindActivation(BodyWriter& body, absl::string_view prefix, absl::string_view ffn, int y);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_FEED_FORWARD_H_
