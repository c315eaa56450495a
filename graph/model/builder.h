#ifndef PLANCAST_GRAPH_MODEL_BUILDER_H_
#define PLANCAST_GRAPH_MODEL_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/model/model_graph.h"

namespace plancast {

// Writes one module body op by op, by names, and checks each step where it is
// written; every error says in which module and op. Dims are those of the
// model (ModelBuilder::AddDim).
//
//   ModuleBuilder layer = model.Module("layer");
//   RETURN_IF_ERROR(layer.InPort("x", {"batch", "seq", "hidden"}));
//   RETURN_IF_ERROR(layer.Parameter("w", {"ffn", "hidden"}));
//   RETURN_IF_ERROR(layer.Call("fc1", "linear", {"x", "w"}, {"y"}));
//   RETURN_IF_ERROR(layer.OutPort("y"));
class ModuleBuilder {
 public:
  ModuleBuilder(absl::string_view name, const std::vector<ModelDim>& dims);

  // A tensor that is fed in, a trained one, and one of the module before.
  absl::Status Input(absl::string_view name, DType dtype, const std::vector<std::string>& dims);
  absl::Status Parameter(absl::string_view name, const std::vector<std::string>& dims);
  absl::Status InPort(absl::string_view name, const std::vector<std::string>& dims);
  absl::Status OutPort(absl::string_view name);

  struct CallOptions {
    // Model dims of factors that no input has, or that go by a second name.
    std::vector<std::pair<std::string, std::string>> factor_dims;
    std::string fusion, recompute_group;
  };
  // Runs a shipped rule, `linear` or `conv2d(stride=2, pad=1)`, on tensors of this
  // module. The outputs are new tensors, whose dims follow from those of the inputs
  // and from the options.
  absl::Status Call(absl::string_view op, absl::string_view rule,
                    const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                    const CallOptions& options);
  absl::Status Call(absl::string_view op, absl::string_view rule,
                    const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs) {
    return Call(op, rule, inputs, outputs, CallOptions());
  }
  // The same for a rule that is not shipped.
  absl::Status Call(absl::string_view op, OpRulePtr rule, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const CallOptions& options);

  const Body& body() const { return body_; }

 private:
  absl::StatusOr<int> FindTensor(absl::string_view name) const;
  absl::StatusOr<int> FindDim(absl::string_view name) const;
  absl::Status AddTensor(absl::string_view name, TensorInfo::Kind kind, DType dtype,
                         const std::vector<std::string>& dims);
  absl::Status InferFactorDims(const CallOptions& options, OpNode* op) const;
  std::string Place(absl::string_view op = "") const;

  std::vector<ModelDim> dims_;
  Body body_;
};

// Puts modules in a chain. Equal bodies are stored once.
class ModelBuilder {
 public:
  explicit ModelBuilder(absl::string_view name) { graph_.name = std::string(name); }

  // `batch`, `replicas` and `replica_batch` have size 0: they are set when a plan
  // is made.
  absl::Status AddDim(absl::string_view name, int64_t size);
  // A builder over the dims added so far.
  ModuleBuilder Module(absl::string_view name) const { return ModuleBuilder(name, graph_.dims); }
  // The module at `path`, `repeat` times, after what is there.
  absl::Status Append(absl::string_view path, const ModuleBuilder& module, int64_t repeat = 1);
  // One parameter with two homes, by path and name.
  absl::Status Tie(absl::string_view first_path, absl::string_view first,
                   absl::string_view second_path, absl::string_view second);

  // The verified model.
  absl::StatusOr<ModelGraph> Build() const;

 private:
  absl::StatusOr<std::pair<int, int>> FindParameter(absl::string_view path,
                                                    absl::string_view name) const;
  ModelGraph graph_;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_BUILDER_H_
