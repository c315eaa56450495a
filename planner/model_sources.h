#ifndef PLANCAST_PLANNER_MODEL_SOURCES_H_
#define PLANCAST_PLANNER_MODEL_SOURCES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "graph/model/model_graph.h"
#include "graph/transformer/transformer_config.h"
#include "planner/predict.h"

namespace plancast {

// A member of the transformer family: attention kernel, dropout and padding of
// the vocabulary follow the plan. Errors of the config are found here.
absl::StatusOr<std::shared_ptr<const ModelSource>> TransformerSource(TransformerConfig config);

// A graph built by hand, the same whatever the plan chooses. It is verified
// here, with a micro-batch of one.
absl::StatusOr<std::shared_ptr<const ModelSource>> GraphSource(ModelGraph graph);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_MODEL_SOURCES_H_
