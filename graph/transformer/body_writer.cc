#include "graph/transformer/body_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "graph/rule/op_rule.h"

namespace plancast {
namespace {

absl::string_view DimOfFactor(absl::string_view factor, FactorDims said) {
  for (const auto& [letter, dim] : said) {
    if (letter == factor) return dim;
  }
  static constexpr std::pair<absl::string_view, absl::string_view> kUsual[] = {
      {"b", "batch"},        {"s", "seq"},      {"t", "kv_seq"},   {"g", "kv_heads"},
      {"r", "heads_per_kv"}, {"c", "head_dim"}, {"d", "head_dim"}, {"e", "head_dim"},
      {"f", "ffn"},          {"v", "vocab"},    {"h", "hidden"},   {"k", "hidden"},
      {"n", "hidden"}};
  for (const auto& [letter, dim] : kUsual) {
    if (letter == factor) return dim;
  }
  return "";
}

}  // namespace

BodyWriter::BodyWriter(absl::string_view name, const std::vector<ModelDim>& dims) : dims_(dims) {
  body_.name = std::string(name);
}

int BodyWriter::FindDim(absl::string_view name) const {
  const auto found = std::find_if(dims_.begin(), dims_.end(),
                                  [&](const ModelDim& dim) { return dim.name == name; });
  PLANCAST_CHECK(found != dims_.end()) << "no dim `" << name << "`";
  return static_cast<int>(found - dims_.begin());
}

int BodyWriter::FindTensor(absl::string_view name) const {
  const auto found = std::find_if(body_.tensors.begin(), body_.tensors.end(),
                                  [&](const TensorInfo& tensor) { return tensor.name == name; });
  PLANCAST_CHECK(found != body_.tensors.end()) << "no tensor `" << name << "`";
  return static_cast<int>(found - body_.tensors.begin());
}

int BodyWriter::AddTensor(std::string name, TensorInfo::Kind kind, DType dtype,
                          std::vector<int> dims) {
  body_.tensors.push_back({std::move(name), kind, dtype, std::move(dims)});
  return static_cast<int>(body_.tensors.size()) - 1;
}

int BodyWriter::Input(absl::string_view name, DType dtype,
                      std::initializer_list<absl::string_view> dims) {
  std::vector<int> indices;
  for (absl::string_view dim : dims) indices.push_back(FindDim(dim));
  return AddTensor(std::string(name), TensorInfo::Kind::kInput, dtype, std::move(indices));
}

int BodyWriter::InPort(absl::string_view name, std::initializer_list<absl::string_view> dims) {
  std::vector<int> indices;
  for (absl::string_view dim : dims) indices.push_back(FindDim(dim));
  body_.in_ports.push_back(AddTensor(std::string(name), TensorInfo::Kind::kActivation,
                                     DType::kCompute, std::move(indices)));
  return body_.in_ports.back();
}

int BodyWriter::DimOfInput(const OpRule& rule, int factor, const std::vector<int>& inputs) const {
  size_t next = 0;
  for (int index : rule.inputs()) {
    const RuleTensor& tensor = rule.tensors()[index];
    if (tensor.parameter || next == inputs.size()) continue;
    const TensorInfo& given = body_.tensors[inputs[next++]];
    for (size_t d = 0; d < std::min(given.dims.size(), tensor.factors.size()); ++d) {
      if (tensor.factors[d] == factor) return given.dims[d];
    }
  }
  PLANCAST_CHECK(false) << "no dim for factor `" << rule.factors()[factor] << "` of `"
                        << rule.name() << "`";
  return -1;
}

std::vector<int> BodyWriter::Op(absl::string_view name, absl::string_view rule_name,
                                const std::vector<int>& inputs, FactorDims said,
                                absl::string_view weights_of) {
  absl::StatusOr<OpRulePtr> rule = FindRule(rule_name);
  PLANCAST_CHECK_OK(rule);
  OpNode op;
  op.name = std::string(name);
  op.rule = *std::move(rule);
  op.fusion = fusion_;
  op.recompute_group = recompute_group_;
  for (size_t f = 0; f < op.rule->factors().size(); ++f) {
    const absl::string_view dim = DimOfFactor(op.rule->factors()[f], said);
    op.factor_dims.push_back(dim.empty() ? DimOfInput(*op.rule, static_cast<int>(f), inputs)
                                         : FindDim(dim));
  }
  const auto add = [&](const RuleTensor& tensor, TensorInfo::Kind kind) {
    std::vector<int> dims;
    for (int factor : tensor.factors) dims.push_back(op.factor_dims[factor]);
    return AddTensor(absl::StrCat(name, ".", tensor.name), kind, tensor.dtype, std::move(dims));
  };
  size_t next = 0;
  for (int index : op.rule->inputs()) {
    const RuleTensor& tensor = op.rule->tensors()[index];
    if (tensor.parameter && !weights_of.empty()) {
      op.inputs.push_back(FindTensor(absl::StrCat(weights_of, ".", tensor.name)));
    } else if (tensor.parameter) {
      op.inputs.push_back(add(tensor, TensorInfo::Kind::kParameter));
    } else {
      PLANCAST_CHECK(next < inputs.size()) << name << " lacks an input of " << rule_name;
      op.inputs.push_back(inputs[next++]);
    }
  }
  PLANCAST_CHECK(next == inputs.size()) << name << " has too many inputs for " << rule_name;
  for (int index : op.rule->outputs()) {
    op.outputs.push_back(add(op.rule->tensors()[index], TensorInfo::Kind::kActivation));
  }
  body_.ops.push_back(std::move(op));
  return body_.ops.back().outputs;
}

int BodyWriter::Op1(absl::string_view name, absl::string_view rule, const std::vector<int>& inputs,
                    FactorDims dims, absl::string_view weights_of) {
  const std::vector<int> outputs = Op(name, rule, inputs, dims, weights_of);
  PLANCAST_CHECK(outputs.size() == 1) << rule << " has several outputs";
  return outputs[0];
}

}  // namespace plancast
