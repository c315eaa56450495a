#include "graph/model/model_graph.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/plancast/bindings/types.h"

namespace plancast {
namespace {

namespace py = pybind11;

py::list DimNames(const ModelGraph& graph, const std::vector<int>& dims) {
  py::list names;
  for (const int dim : dims) names.append(graph.dims[dim].name);
  return names;
}

const char* KindName(TensorInfo::Kind kind) {
  if (kind == TensorInfo::Kind::kParameter) return "parameter";
  return kind == TensorInfo::Kind::kInput ? "input" : "activation";
}

py::dict ModuleOf(const ModelGraph& graph, const Segment& segment) {
  const Body& body = graph.bodies[segment.body];
  py::list tensors, ops;
  for (const TensorInfo& tensor : body.tensors) {
    py::dict fields;
    fields["name"] = tensor.name;
    fields["kind"] = KindName(tensor.kind);
    fields["dims"] = DimNames(graph, tensor.dims);
    if (tensor.sparse) fields["sparse"] = true;
    const bool own = tensor.dtype != DType::kCompute;
    fields["dtype"] = own ? std::string(DTypeName(tensor.dtype)) : "";
    tensors.append(std::move(fields));
  }
  for (const OpNode& op : body.ops) {
    py::dict fields;
    fields["name"] = op.name;
    fields["rule"] = std::const_pointer_cast<OpRule>(op.rule);
    fields["inputs"] = op.inputs;
    fields["outputs"] = op.outputs;
    fields["factor_dims"] = DimNames(graph, op.factor_dims);
    fields["fusion"] = op.fusion;
    fields["recompute_group"] = op.recompute_group;
    ops.append(std::move(fields));
  }
  py::dict module;
  module["path"] = segment.path;
  module["repeat"] = segment.repeat;
  module["list"] = segment.list;
  module["tensors"] = std::move(tensors);
  module["ops"] = std::move(ops);
  module["in_ports"] = body.in_ports;
  module["out_ports"] = body.out_ports;
  return module;
}

// The graph of a model as Model.from_graph takes it; of a transformer, as it is drawn with the
// default choices.
py::dict GraphSpec(const PyModel& model) {
  const ModelGraph& graph = *model.graph;
  std::vector<std::pair<std::string, int64_t>> dims;
  for (const ModelDim& dim : graph.dims) dims.emplace_back(dim.name, dim.size);
  py::list modules, ties;
  for (const Segment& segment : graph.segments) modules.append(ModuleOf(graph, segment));
  for (const TiedParameter& tied : graph.tied) {
    const std::vector<int64_t> first = {tied.first_segment, tied.first_tensor, tied.first_repeat};
    const std::vector<int64_t> second = {tied.second_segment, tied.second_tensor,
                                         tied.second_repeat};
    ties.append(py::make_tuple(first, second));
  }
  py::dict spec;
  spec["name"] = graph.name;
  spec["dims"] = dims;
  spec["modules"] = std::move(modules);
  spec["ties"] = std::move(ties);
  return spec;
}

}  // namespace

void BindModelGraph(py::module_& m) { m.def("model_graph", &GraphSpec, py::arg("model")); }

}  // namespace plancast
