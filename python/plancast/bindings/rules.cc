#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/device_mesh.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// One argument or result of a rule.
struct Argument {
  std::string name;
  bool parameter = false;
  std::string dtype;  // empty: the compute type
  std::vector<std::string> factors;
};

std::vector<Argument> Arguments(const OpRule& rule, const std::vector<int>& tensors) {
  std::vector<Argument> out;
  for (int index : tensors) {
    const RuleTensor& tensor = rule.tensors()[index];
    Argument argument;
    argument.name = tensor.name;
    argument.parameter = tensor.parameter;
    if (tensor.dtype != DType::kCompute) argument.dtype = std::string(DTypeName(tensor.dtype));
    for (int factor : tensor.factors) argument.factors.push_back(rule.factors()[factor]);
    out.push_back(std::move(argument));
  }
  return out;
}

// pybind11 holds what it hands out by a pointer to non-const; rules have no
// methods that change them.
std::shared_ptr<OpRule> Handle(OpRulePtr rule) {
  return std::const_pointer_cast<OpRule>(std::move(rule));
}

// What splitting one factor into equal parts means: the layout of each tensor
// over the one mesh axis (`replicate`, `shard(1)`, `partial(sum)`), and the
// reductions owed inside as (after statement, tensors, kind).
struct Split {
  std::map<std::string, std::string> layouts;
  std::vector<std::tuple<int, std::vector<std::string>, std::string>> reductions;
};

std::string ReductionName(Reduction reduction) {
  return reduction == Reduction::kMax ? "max" : "sum";
}

std::string PlacementName(const Placement& placement) {
  if (placement.is_shard() && !placement.halo.empty()) {
    return absl::StrCat("shard(", static_cast<int>(placement.dim), ", halo ", placement.halo.before,
                        "+", placement.halo.after, ")");
  }
  if (placement.is_shard()) return absl::StrCat("shard(", static_cast<int>(placement.dim), ")");
  if (placement.is_partial()) {
    return absl::StrCat("partial(", ReductionName(placement.reduction), ")");
  }
  return "replicate";
}

std::vector<int64_t> ExtentsOf(const OpRule& rule, const std::map<std::string, int64_t>& sizes) {
  std::vector<int64_t> extents;
  for (const std::string& name : rule.factors()) {
    auto size = sizes.find(name);
    if (size == sizes.end()) {
      ThrowStatus(absl::InvalidArgumentError(
          absl::StrCat("no size for factor `", name, "` of rule `", rule.name(), "`.")));
    }
    extents.push_back(size->second);
  }
  return extents;
}

Split SplitFactor(const OpRule& rule, const std::string& factor, int64_t parts,
                  const std::map<std::string, int64_t>& sizes) {
  const int index = ValueOrThrow(rule.FindFactor(factor));
  const std::vector<int64_t> extents = ExtentsOf(rule, sizes);
  const DeviceMesh mesh = ValueOrThrow(DeviceMesh::Create({{"parts", parts}}));
  FactorSplit split = FactorSplit::None(rule);
  split.axes[index] = {0};
  const OpPartition partition = ValueOrThrow(PartitionOp(rule, split, mesh, extents));
  Split result;
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    result.layouts[rule.tensors()[t].name] = PlacementName(partition.tensors[t].placements[0]);
  }
  for (const InnerReduction& reduction : partition.reductions) {
    std::vector<std::string> names;
    for (int t : reduction.tensors) names.push_back(rule.tensors()[t].name);
    result.reductions.emplace_back(reduction.after, std::move(names),
                                   std::string(CombinerName(reduction)));
  }
  return result;
}

// What an op does if its factors have these sizes: FLOPs of products and of all else, elements
// that it reads and writes.
struct Work {
  double product_flops = 0, other_flops = 0, read = 0, written = 0;
};

Work WorkOfWhole(const OpRule& rule, const std::map<std::string, int64_t>& sizes) {
  const OpWork work =
      WorkOf(rule, ExtentsOf(rule, sizes), 0, static_cast<int>(rule.statements().size()));
  Work out;
  for (const Contraction& contraction : work.contractions) out.product_flops += contraction.flops;
  out.other_flops = work.pointwise_ops;
  for (const double elements : work.read_elements) out.read += elements;
  for (const double elements : work.write_elements) out.written += elements;
  return out;
}

}  // namespace

void BindRules(py::module_& m) {
  py::class_<Argument>(m, "Argument")
      .def_readonly("name", &Argument::name)
      .def_readonly("parameter", &Argument::parameter)
      .def_readonly("dtype", &Argument::dtype)
      .def_readonly("factors", &Argument::factors);
  py::class_<Split>(m, "Split")
      .def_readonly("layouts", &Split::layouts)
      .def_readonly("reductions", &Split::reductions);
  py::class_<Work>(m, "Work")
      .def_readonly("product_flops", &Work::product_flops)
      .def_readonly("other_flops", &Work::other_flops)
      .def_readonly("read", &Work::read)
      .def_readonly("written", &Work::written);
  py::class_<OpRule, std::shared_ptr<OpRule>>(m, "OpRule")
      .def_static(
          "parse",
          [](const std::string& text) {
            return std::make_shared<OpRule>(ValueOrThrow(OpRule::Parse(text)));
          },
          py::arg("text"))
      .def_static(
          "find",
          [](const std::string& call, const std::vector<int64_t>& ranks) {
            return Handle(ValueOrThrow(FindRule(call, ranks)));
          },
          py::arg("call"), py::arg("ranks") = std::vector<int64_t>())
      .def_static("names", [] { return RuleNames(); })
      .def_property_readonly("name", [](const OpRule& self) { return self.name(); })
      .def_property_readonly("factors", [](const OpRule& self) { return self.factors(); })
      .def_property_readonly("inputs",
                             [](const OpRule& self) { return Arguments(self, self.inputs()); })
      .def_property_readonly("outputs",
                             [](const OpRule& self) { return Arguments(self, self.outputs()); })
      .def_property_readonly("tensors",
                             [](const OpRule& self) {
                               std::vector<int> all(self.tensors().size());
                               std::iota(all.begin(), all.end(), 0);
                               return Arguments(self, all);
                             })
      .def("work", &WorkOfWhole, py::arg("sizes"))
      .def(
          "backward",
          [](const OpRule& self, std::vector<std::string> wrt) {
            if (wrt.empty()) wrt = DifferentiableInputs(self);
            return std::make_shared<OpRule>(ValueOrThrow(Differentiate(self, wrt)));
          },
          py::arg("wrt") = std::vector<std::string>())
      .def("split", &SplitFactor, py::arg("factor"), py::arg("parts"), py::arg("sizes"))
      .def("__str__", [](const OpRule& self) { return self.DebugString(); })
      .def(py::pickle([](const OpRule& self) { return self.DebugString(); },
                      [](const std::string& text) {
                        return std::make_shared<OpRule>(ValueOrThrow(OpRule::Parse(text)));
                      }));
}

}  // namespace plancast
