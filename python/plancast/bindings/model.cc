#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/model/program.h"
#include "planner/forecast/model_source.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

TensorInfo::Kind KindOf(const std::string& name) {
  if (name == "parameter") return TensorInfo::Kind::kParameter;
  if (name == "input") return TensorInfo::Kind::kInput;
  return TensorInfo::Kind::kActivation;
}

std::vector<int> DimIndices(const ModelGraph& graph, const py::handle& names) {
  std::vector<int> out;
  for (const py::handle& name : names) {
    out.push_back(ValueOrThrow(graph.FindDim(name.cast<std::string>())));
  }
  return out;
}

Body BodyOf(const ModelGraph& graph, const py::dict& module) {
  Body body;
  body.name = module["path"].cast<std::string>();
  for (const py::handle& item : module["tensors"]) {
    const auto fields = item.cast<py::dict>();
    TensorInfo tensor;
    tensor.name = fields["name"].cast<std::string>();
    tensor.kind = KindOf(fields["kind"].cast<std::string>());
    const auto dtype = fields["dtype"].cast<std::string>();
    if (!dtype.empty()) tensor.dtype = ValueOrThrow(ParseDType(dtype));
    tensor.dims = DimIndices(graph, fields["dims"]);
    tensor.sparse = fields.contains("sparse") && fields["sparse"].cast<bool>();
    body.tensors.push_back(std::move(tensor));
  }
  for (const py::handle& item : module["ops"]) {
    const auto fields = item.cast<py::dict>();
    OpNode op;
    op.name = fields["name"].cast<std::string>();
    op.rule = fields["rule"].cast<std::shared_ptr<OpRule>>();
    op.inputs = fields["inputs"].cast<std::vector<int>>();
    op.outputs = fields["outputs"].cast<std::vector<int>>();
    op.factor_dims = DimIndices(graph, fields["factor_dims"]);
    op.fusion = fields["fusion"].cast<std::string>();
    op.recompute_group = fields["recompute_group"].cast<std::string>();
    body.ops.push_back(std::move(op));
  }
  body.in_ports = module["in_ports"].cast<std::vector<int>>();
  body.out_ports = module["out_ports"].cast<std::vector<int>>();
  return body;
}

// The graph that plancast.ModelBuilder describes.
ModelGraph GraphOf(const py::dict& spec) {
  ModelGraph graph;
  graph.name = spec["name"].cast<std::string>();
  for (const auto& [name, size] :
       spec["dims"].cast<std::vector<std::pair<std::string, int64_t>>>()) {
    graph.dims.push_back({name, size});
  }
  for (const py::handle& item : spec["modules"]) {
    const auto module = item.cast<py::dict>();
    const int body = static_cast<int>(graph.bodies.size());
    graph.bodies.push_back(BodyOf(graph, module));
    const auto repeat = module["repeat"].cast<int64_t>();
    const bool list = module["list"].cast<bool>();
    graph.segments.push_back({graph.bodies[body].name, body, repeat, list});
  }
  graph.layers = graph.LayerCount();
  using Place = std::vector<int>;  // module, tensor, and which copy of the module if not the first
  const auto copy_of = [](const Place& place) { return place.size() > 2 ? place[2] : 0; };
  for (const auto& [first, second] : spec["ties"].cast<std::vector<std::pair<Place, Place>>>()) {
    graph.tied.push_back(
        {first.at(0), first.at(1), second.at(0), second.at(1), copy_of(first), copy_of(second)});
  }
  const std::map<std::string, int64_t ModelGraph::*> facts = {{"hidden", &ModelGraph::hidden},
                                                              {"head_dim", &ModelGraph::head_dim},
                                                              {"seq", &ModelGraph::seq},
                                                              {"vocab", &ModelGraph::vocab}};
  int64_t kv_heads = 0, heads_per_kv = 1;
  for (const ModelDim& dim : graph.dims) {
    if (auto fact = facts.find(dim.name); fact != facts.end()) graph.*(fact->second) = dim.size;
    if (dim.name == "kv_heads") kv_heads = dim.size;
    if (dim.name == "heads_per_kv") heads_per_kv = dim.size;
  }
  graph.heads = kv_heads * heads_per_kv;
  return graph;
}

PyModel OfProgram(
    const std::string& name, const std::vector<std::pair<std::string, int64_t>>& dims,
    const std::vector<std::tuple<std::string, std::vector<std::string>, std::string>>& given,
    const std::vector<std::string>& steps) {
  IndexProgram program{name, dims, {}, steps};
  for (const auto& [tensor, tensor_dims, dtype] : given) {
    program.given.push_back({tensor, tensor_dims});
    if (!dtype.empty()) program.given.back().dtype = ValueOrThrow(ParseDType(dtype));
  }
  return PyModel::Create(ValueOrThrow(GraphSource(ValueOrThrow(BuildProgram(program)))));
}

}  // namespace

PyModel PyModel::Create(std::shared_ptr<const ModelSource> source) {
  auto graph = std::make_shared<const ModelGraph>(Unlocked([&] { return source->Draw({}); }));
  return {std::move(source), std::move(graph)};
}

void BindModel(py::module_& m) {
  py::class_<PyModel>(m, "Model")
      .def_static(
          "transformer",
          [](const std::string& json, const std::string& what) {
            TransformerConfig config = ValueOrThrow(ParseTransformerConfig(json, what));
            return PyModel::Create(ValueOrThrow(TransformerSource(std::move(config))));
          },
          py::arg("json"), py::arg("what"))
      .def_static(
          "from_graph",
          [](const py::dict& spec) {
            return PyModel::Create(ValueOrThrow(GraphSource(GraphOf(spec))));
          },
          py::arg("spec"))
      .def_static("program", &OfProgram, py::arg("name"), py::arg("dims"), py::arg("given"),
                  py::arg("steps"))
      .def_property_readonly("name", [](const PyModel& self) { return self.source->name(); })
      .def_property_readonly("key", [](const PyModel& self) { return self.source->key(); })
      .def_property_readonly("parameters",
                             [](const PyModel& self) { return self.graph->ParameterCount(); })
      .def_property_readonly("active_parameters",
                             [](const PyModel& self) { return self.graph->ActiveParameterCount(); })
      .def_property_readonly("layers", [](const PyModel& self) { return self.graph->layers; })
      .def_property_readonly("dims",
                             [](const PyModel& self) {
                               std::vector<std::pair<std::string, int64_t>> dims;
                               for (const ModelDim& dim : self.graph->dims) {
                                 dims.emplace_back(dim.name, dim.size);
                               }
                               return dims;
                             })
      .def_property_readonly("hidden", [](const PyModel& self) { return self.graph->hidden; })
      .def_property_readonly("heads", [](const PyModel& self) { return self.graph->heads; })
      .def_property_readonly("seq", [](const PyModel& self) { return self.graph->seq; })
      .def_property_readonly("vocab", [](const PyModel& self) { return self.graph->vocab; })
      .def("__str__", [](const PyModel& self) { return self.graph->DebugString(); });
}

}  // namespace plancast
