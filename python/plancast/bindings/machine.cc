#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "cluster/machine_proto.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {

void BindMachine(py::module_& m) {
  py::class_<PyMachine>(m, "Machine")
      .def_static(
          "preset",
          [](const std::string& text) { return PyMachine{ValueOrThrow(MachineFromPreset(text))}; },
          py::arg("text"))
      .def_static("preset_names", [] { return MachinePresetNames(); })
      .def_static(
          "from_json",
          [](const std::string& json, const std::string& what) {
            return PyMachine{ValueOrThrow(MachineFromJson(json, what))};
          },
          py::arg("json"), py::arg("what"))
      .def("to_json", [](const PyMachine& self) { return MachineToJson(self.machine); })
      .def_property_readonly("name", [](const PyMachine& self) { return self.machine.spec().name; })
      .def_property_readonly("gpu",
                             [](const PyMachine& self) { return self.machine.device().name; })
      .def_property_readonly("devices",
                             [](const PyMachine& self) { return self.machine.num_devices(); })
      .def_property_readonly("hosts",
                             [](const PyMachine& self) { return self.machine.spec().hosts; })
      .def_property_readonly(
          "gpus_per_host", [](const PyMachine& self) { return self.machine.spec().gpus_per_host; })
      .def_property_readonly("gpus_per_domain",
                             [](const PyMachine& self) { return self.machine.gpus_per_domain(); })
      .def_property_readonly(
          "memory_bytes", [](const PyMachine& self) { return self.machine.device().memory_bytes; });
}

}  // namespace plancast
