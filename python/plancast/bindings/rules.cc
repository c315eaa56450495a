#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_rule.h"
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

}  // namespace

void BindRules(py::module_& m) {
  py::class_<Argument>(m, "Argument")
      .def_readonly("name", &Argument::name)
      .def_readonly("parameter", &Argument::parameter)
      .def_readonly("dtype", &Argument::dtype)
      .def_readonly("factors", &Argument::factors);
  py::class_<OpRule, std::shared_ptr<OpRule>>(m, "OpRule")
      .def_static(
          "parse",
          [](const std::string& text) {
            return std::make_shared<OpRule>(ValueOrThrow(OpRule::Parse(text)));
          },
          py::arg("text"))
      .def_static(
          "find", [](const std::string& name) { return Handle(ValueOrThrow(FindRule(name))); },
          py::arg("name"))
      .def_static("names", [] { return RuleNames(); })
      .def_property_readonly("name", [](const OpRule& self) { return self.name(); })
      .def_property_readonly("factors", [](const OpRule& self) { return self.factors(); })
      .def_property_readonly("inputs",
                             [](const OpRule& self) { return Arguments(self, self.inputs()); })
      .def_property_readonly("outputs",
                             [](const OpRule& self) { return Arguments(self, self.outputs()); })
      .def(
          "backward",
          [](const OpRule& self, std::vector<std::string> wrt) {
            if (wrt.empty()) wrt = DifferentiableInputs(self);
            return std::make_shared<OpRule>(ValueOrThrow(Differentiate(self, wrt)));
          },
          py::arg("wrt") = std::vector<std::string>())
      .def("__str__", [](const OpRule& self) { return self.DebugString(); });
}

}  // namespace plancast
