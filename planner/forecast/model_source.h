#ifndef PLANCAST_PLANNER_FORECAST_MODEL_SOURCE_H_
#define PLANCAST_PLANNER_FORECAST_MODEL_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/model/model_graph.h"
#include "graph/transformer/transformer_config.h"
#include "strategy/software_profile.h"

namespace plancast {

// What a model needs to know of the plan before its graph can be drawn.
struct GraphChoices {
  Attention attention = Attention::kFlash;
  bool dropout = false;
  int64_t vocab_pad_multiple = 0;  // already times tp; 0 or 1: not padded
  bool experts_weigh_activations = false;
  int64_t experts_sorted_over = 0;  // ranks, where the software sorts tokens by expert
  bool shared_experts_beside = false;
};

// A model of which graphs can be drawn: a transformer family member or a graph
// built by hand. Immutable and shared between threads.
class ModelSource {
 public:
  virtual ~ModelSource() = default;
  virtual absl::StatusOr<ModelGraph> Draw(const GraphChoices& choices) const = 0;
  virtual const std::string& name() const = 0;
  // Two sources with equal keys draw equal graphs (memo key).
  virtual std::string key() const = 0;
};

// A member of the transformer family: attention kernel, dropout and padding of
// the vocabulary follow the plan. Errors of the config are found here.
absl::StatusOr<std::shared_ptr<const ModelSource>> TransformerSource(TransformerConfig config);

// A graph built by hand, the same whatever the plan chooses. It is verified
// here, with a micro-batch of one.
absl::StatusOr<std::shared_ptr<const ModelSource>> GraphSource(ModelGraph graph);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_MODEL_SOURCE_H_
