#include "graph/model/builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace plancast {
namespace {

absl::Status Error(absl::string_view message) { return absl::InvalidArgumentError(message); }

}  // namespace

ModuleBuilder::ModuleBuilder(absl::string_view name, const std::vector<ModelDim>& dims)
    : dims_(dims) {
  body_.name = std::string(name);
}

std::string ModuleBuilder::Place(absl::string_view op) const {
  return op.empty() ? absl::StrCat("module `", body_.name, "`")
                    : absl::StrCat("module `", body_.name, "`, op `", op, "`");
}

absl::StatusOr<int> ModuleBuilder::FindTensor(absl::string_view name) const {
  std::vector<std::string> names;
  for (size_t t = 0; t < body_.tensors.size(); ++t) {
    if (body_.tensors[t].name == name) return static_cast<int>(t);
    names.push_back(body_.tensors[t].name);
  }
  return Error(absl::StrCat("no tensor `", name, "`.", Offer(name, names)));
}

absl::StatusOr<int> ModuleBuilder::FindDim(absl::string_view name) const {
  std::vector<std::string> names;
  for (size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d].name == name) return static_cast<int>(d);
    names.push_back(dims_[d].name);
  }
  return Error(absl::StrCat("no dim `", name, "`; the model has ", JoinQuoted(names), ".",
                            DidYouMean(name, names)));
}

absl::Status ModuleBuilder::AddTensor(absl::string_view name, TensorInfo::Kind kind, DType dtype,
                                      const std::vector<std::string>& dims) {
  TensorInfo tensor;
  tensor.name = std::string(name);
  tensor.kind = kind;
  tensor.dtype = dtype;
  if (name.empty() || FindTensor(name).ok()) {
    return Error(absl::StrCat(Place(), ": tensor names must be unique; `", name, "` is not."));
  }
  for (const std::string& dim : dims) {
    ASSIGN_OR_RETURN(const int index, FindDim(dim), _ << Place() << ", tensor `" << name << "`");
    tensor.dims.push_back(index);
  }
  body_.tensors.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status ModuleBuilder::Input(absl::string_view name, DType dtype,
                                  const std::vector<std::string>& dims) {
  return AddTensor(name, TensorInfo::Kind::kInput, dtype, dims);
}

absl::Status ModuleBuilder::Parameter(absl::string_view name,
                                      const std::vector<std::string>& dims) {
  return AddTensor(name, TensorInfo::Kind::kParameter, DType::kCompute, dims);
}

absl::Status ModuleBuilder::InPort(absl::string_view name, const std::vector<std::string>& dims) {
  RETURN_IF_ERROR(AddTensor(name, TensorInfo::Kind::kActivation, DType::kCompute, dims));
  body_.in_ports.push_back(static_cast<int>(body_.tensors.size()) - 1);
  return absl::OkStatus();
}

absl::Status ModuleBuilder::OutPort(absl::string_view name) {
  ASSIGN_OR_RETURN(const int tensor, FindTensor(name), _ << Place());
  body_.out_ports.push_back(tensor);
  return absl::OkStatus();
}

absl::Status ModuleBuilder::InferFactorDims(const CallOptions& options, OpNode* op) const {
  const OpRule& rule = *op->rule;
  op->factor_dims.assign(rule.factors().size(), -1);
  std::vector<std::string> source(rule.factors().size());
  for (const auto& [factor, dim] : options.factor_dims) {
    ASSIGN_OR_RETURN(const int f, rule.FindFactor(factor));
    ASSIGN_OR_RETURN(op->factor_dims[f], FindDim(dim));
    source[f] = "the call";
  }
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    const RuleTensor& wanted = rule.tensors()[rule.inputs()[i]];
    const TensorInfo& given = body_.tensors[op->inputs[i]];
    if (given.dims.size() != wanted.factors.size()) {
      return Error(absl::StrCat("`", rule.name(), "` wants its argument `", wanted.name, "` with ",
                                wanted.factors.size(), " dims; `", given.name, "` has ",
                                given.dims.size(), "."));
    }
    for (size_t d = 0; d < given.dims.size(); ++d) {
      const int f = wanted.factors[d];
      int& dim = op->factor_dims[f];
      if (dim < 0) {
        dim = given.dims[d];
        source[f] = absl::StrCat("`", given.name, "`");
        continue;
      }
      const ModelDim &one = dims_[dim], &other = dims_[given.dims[d]];
      if (dim == given.dims[d] || (one.size == other.size && one.size > 0)) continue;
      return Error(absl::StrCat("factor `", rule.factors()[f], "` of `", rule.name(), "` is `",
                                one.name, "` (", one.size, ") in ", source[f], ", but `",
                                other.name, "` (", other.size, ") in `", given.name,
                                "`; it has one size."));
    }
  }
  for (size_t f = 0; f < op->factor_dims.size(); ++f) {
    if (op->factor_dims[f] >= 0) continue;
    return Error(absl::StrCat("the inputs do not say the size of factor `", rule.factors()[f],
                              "` of `", rule.name(), "`; name its dim in the call."));
  }
  return absl::OkStatus();
}

absl::Status ModuleBuilder::Call(absl::string_view op_name, OpRulePtr rule,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs,
                                 const CallOptions& options) {
  OpNode op;
  op.name = std::string(op_name);
  op.rule = std::move(rule);
  op.fusion = options.fusion;
  op.recompute_group = options.recompute_group;
  const bool taken = std::any_of(body_.ops.begin(), body_.ops.end(),
                                 [&](const OpNode& other) { return other.name == op_name; });
  if (op_name.empty() || taken) {
    return Error(absl::StrCat(Place(), ": op names must be unique; `", op_name, "` is not."));
  }
  if (inputs.size() != op.rule->inputs().size() || outputs.size() != op.rule->outputs().size()) {
    return Error(absl::StrCat(Place(op_name), ": `", op.rule->name(), "` takes ",
                              op.rule->inputs().size(), " tensors and gives ",
                              op.rule->outputs().size(), "; the call has ", inputs.size(), " and ",
                              outputs.size(), "."));
  }
  for (const std::string& input : inputs) {
    ASSIGN_OR_RETURN(const int tensor, FindTensor(input), _ << Place(op_name));
    op.inputs.push_back(tensor);
  }
  RETURN_IF_ERROR(InferFactorDims(options, &op)) << Place(op_name);
  const size_t before = body_.tensors.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const RuleTensor& output = op.rule->tensors()[op.rule->outputs()[i]];
    std::vector<std::string> dims;
    for (int f : output.factors) dims.push_back(dims_[op.factor_dims[f]].name);
    absl::Status added = AddTensor(outputs[i], TensorInfo::Kind::kActivation, output.dtype, dims);
    if (!added.ok()) {
      body_.tensors.resize(before);
      return added;
    }
    op.outputs.push_back(static_cast<int>(body_.tensors.size()) - 1);
  }
  body_.ops.push_back(std::move(op));
  return absl::OkStatus();
}

absl::Status ModuleBuilder::Call(absl::string_view op, absl::string_view rule,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs,
                                 const CallOptions& options) {
  std::vector<int64_t> ranks;
  for (const std::string& input : inputs) {
    ASSIGN_OR_RETURN(const int tensor, FindTensor(input), _ << Place(op));
    ranks.push_back(static_cast<int64_t>(body_.tensors[tensor].dims.size()));
  }
  ASSIGN_OR_RETURN(OpRulePtr found, FindRule(rule, ranks), _ << Place(op));
  return Call(op, std::move(found), inputs, outputs, options);
}

absl::Status ModelBuilder::AddDim(absl::string_view name, int64_t size) {
  if (name.empty() || graph_.FindDim(name).ok()) {
    return Error(
        absl::StrCat("model `", graph_.name, "`: dim names must be unique; `", name, "` is not."));
  }
  const ModelDim dim = {std::string(name), size};
  if (size < 0 || (size == 0 && !dim.is_bound_by_plan())) {
    return Error(absl::StrCat("model `", graph_.name, "`: dim `", name, "` has size ", size,
                              "; sizes start at 1 (`batch` may be 0: set by the plan)."));
  }
  graph_.dims.push_back(dim);
  return absl::OkStatus();
}

absl::Status ModelBuilder::Append(absl::string_view path, const ModuleBuilder& module,
                                  int64_t repeat) {
  Segment segment;
  segment.path = std::string(path);
  segment.repeat = repeat;
  auto known = std::find_if(graph_.bodies.begin(), graph_.bodies.end(),
                            [&](const Body& body) { return SameBody(body, module.body()); });
  segment.body = static_cast<int>(known - graph_.bodies.begin());
  ModelGraph longer = graph_;
  if (known == graph_.bodies.end()) longer.bodies.push_back(module.body());
  longer.segments.push_back(std::move(segment));
  RETURN_IF_ERROR(longer.Verify()) << "model `" << graph_.name << "`";
  graph_ = std::move(longer);
  return absl::OkStatus();
}

absl::StatusOr<std::pair<int, int>> ModelBuilder::FindParameter(absl::string_view path,
                                                                absl::string_view name) const {
  std::vector<std::string> known;
  for (size_t s = 0; s < graph_.segments.size(); ++s) {
    known.push_back(graph_.segments[s].path);
    if (graph_.segments[s].path != path) continue;
    const Body& body = graph_.bodies[graph_.segments[s].body];
    std::vector<std::string> parameters;
    for (size_t t = 0; t < body.tensors.size(); ++t) {
      if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
      if (body.tensors[t].name == name) {
        return std::make_pair(static_cast<int>(s), static_cast<int>(t));
      }
      parameters.push_back(body.tensors[t].name);
    }
    return Error(absl::StrCat("module `", path, "` has no parameter `", name, "`; it has ",
                              JoinQuoted(parameters), ".", DidYouMean(name, parameters)));
  }
  return Error(absl::StrCat("model `", graph_.name, "` has no module `", path, "`; it has ",
                            JoinQuoted(known), ".", DidYouMean(path, known)));
}

absl::Status ModelBuilder::Tie(absl::string_view first_path, absl::string_view first,
                               absl::string_view second_path, absl::string_view second) {
  ASSIGN_OR_RETURN(const auto one, FindParameter(first_path, first));
  ASSIGN_OR_RETURN(const auto two, FindParameter(second_path, second));
  ModelGraph tied = graph_;
  tied.tied.push_back({one.first, one.second, two.first, two.second});
  RETURN_IF_ERROR(tied.Verify()) << "model `" << graph_.name << "`";
  graph_ = std::move(tied);
  return absl::OkStatus();
}

absl::StatusOr<ModelGraph> ModelBuilder::Build() const {
  RETURN_IF_ERROR(graph_.Verify()) << "model `" << graph_.name << "`";
  if (graph_.segments.empty()) {
    return Error(absl::StrCat("model `", graph_.name, "` has no modules; Append some."));
  }
  return graph_;
}

}  // namespace plancast
