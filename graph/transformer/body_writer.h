#ifndef PLANCAST_GRAPH_TRANSFORMER_BODY_WRITER_H_
#define PLANCAST_GRAPH_TRANSFORMER_BODY_WRITER_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/model/model_graph.h"

namespace plancast {

// The name of a model dim for a factor of a rule.
using FactorDims = std::initializer_list<std::pair<absl::string_view, absl::string_view>>;

// Writes the body of a transformer segment op by op, with the shipped rules and
// their factor letters: b is batch, s seq, t kv_seq, g kv_heads, r heads_per_kv,
// c d e head_dim, f ffn, v vocab, h k n hidden, unless a call says otherwise.
// Mistakes of the caller (no such rule or dim) end the program.
class BodyWriter {
 public:
  BodyWriter(absl::string_view name, const std::vector<ModelDim>& dims);

  // A tensor that is fed in, such as token ids, or that an earlier segment
  // hands over.
  int Input(absl::string_view name, DType dtype, std::initializer_list<absl::string_view> dims);
  int InPort(absl::string_view name, std::initializer_list<absl::string_view> dims);
  void OutPort(int tensor) { body_.out_ports.push_back(tensor); }

  // An op on `inputs`, the rule's arguments less its parameters, which are made
  // here as `NAME.w`, or are those of the op `weights_of`. Returns the outputs `NAME.y`, one a
  // rule output.
  std::vector<int> Op(absl::string_view name, absl::string_view rule,
                      const std::vector<int>& inputs, FactorDims dims = {},
                      absl::string_view weights_of = "");
  // The same for a rule of one output.
  int Op1(absl::string_view name, absl::string_view rule, const std::vector<int>& inputs,
          FactorDims dims = {}, absl::string_view weights_of = "");

  // Labels of the ops written from here on; "" ends them.
  void Fusion(absl::string_view label) { fusion_ = std::string(label); }
  void RecomputeGroup(absl::string_view label) { recompute_group_ = std::string(label); }

  int FindTensor(absl::string_view name) const;
  Body Take() { return std::move(body_); }

 private:
  int FindDim(absl::string_view name) const;
  // The dim that an input has for a factor.
  int DimOfInput(const OpRule& rule, int factor, const std::vector<int>& inputs) const;
  int AddTensor(std::string name, TensorInfo::Kind kind, DType dtype, std::vector<int> dims);

  const std::vector<ModelDim>& dims_;
  Body body_;
  std::string fusion_, recompute_group_;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_TRANSFORMER_BODY_WRITER_H_
