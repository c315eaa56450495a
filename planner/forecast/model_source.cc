#include "planner/forecast/model_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/transformer/transformer.h"

namespace plancast {
namespace {

class Transformer : public ModelSource {
 public:
  explicit Transformer(TransformerConfig config)
      : config_(std::move(config)), key_(TransformerConfigJson(config_)) {}

  absl::StatusOr<ModelGraph> Draw(const GraphChoices& choices) const override {
    TransformerChoices transformer;
    transformer.flash_attention = choices.attention == Attention::kFlash;
    transformer.dropout = choices.dropout;
    transformer.vocab_multiple = std::max<int64_t>(1, choices.vocab_pad_multiple);
    transformer.experts_weigh_activations = choices.experts_weigh_activations;
    transformer.experts_sorted_over = choices.experts_sorted_over;
    transformer.shared_experts_beside = choices.shared_experts_beside;
    return BuildTransformer(config_, transformer);
  }
  const std::string& name() const override { return config_.name; }
  std::string key() const override { return key_; }

 private:
  const TransformerConfig config_;
  const std::string key_;
};

class HandBuilt : public ModelSource {
 public:
  explicit HandBuilt(ModelGraph graph) : graph_(std::move(graph)) {
    key_ = graph_.DebugString();
    // The text names ops' rules; two rules of one name may differ.
    for (const Body& body : graph_.bodies) {
      for (const OpNode& op : body.ops) absl::StrAppend(&key_, op.rule->DebugString());
    }
    for (const ModelDim& dim : graph_.dims) absl::StrAppend(&key_, dim.name, "=", dim.size, ";");
  }

  absl::StatusOr<ModelGraph> Draw(const GraphChoices&) const override { return graph_; }
  const std::string& name() const override { return graph_.name; }
  std::string key() const override { return key_; }

 private:
  const ModelGraph graph_;
  std::string key_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ModelSource>> TransformerSource(TransformerConfig config) {
  ASSIGN_OR_RETURN(config, Completed(std::move(config)));
  return std::make_shared<const Transformer>(std::move(config));
}

absl::StatusOr<std::shared_ptr<const ModelSource>> GraphSource(ModelGraph graph) {
  RETURN_IF_ERROR(graph.WithBatch(1).Verify());
  return std::make_shared<const HandBuilt>(std::move(graph));
}

}  // namespace plancast
