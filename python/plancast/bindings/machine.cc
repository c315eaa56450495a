#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cluster/machine_proto.h"
#include "cluster/mixed_machine.h"
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
      .def_static(
          "combine",
          [](const std::vector<PyMachine>& parts) {
            std::vector<Machine> machines;
            for (const PyMachine& part : parts) machines.push_back(part.machine);
            return PyMachine{ValueOrThrow(CombineMachines(machines))};
          },
          py::arg("parts"))
      .def("to_json", [](const PyMachine& self) { return MachineToJson(self.machine); })
      .def_property_readonly("name", [](const PyMachine& self) { return self.machine.spec().name; })
      .def_property_readonly("gpu", [](const PyMachine& self) { return DeviceNames(self.machine); })
      .def_property_readonly("sections",
                             [](const PyMachine& self) {
                               std::vector<PyMachine> sections;
                               for (int s = 0; s < self.machine.num_sections(); ++s) {
                                 sections.push_back({self.machine.section(s)});
                               }
                               return sections;
                             })
      .def("describe", [](const PyMachine& self) { return self.machine.DebugString(); })
      .def_property_readonly("devices",
                             [](const PyMachine& self) { return self.machine.num_devices(); })
      .def_property_readonly("hosts",
                             [](const PyMachine& self) { return self.machine.spec().hosts; })
      .def_property_readonly(
          "gpus_per_host", [](const PyMachine& self) { return self.machine.spec().gpus_per_host; })
      .def_property_readonly("gpus_per_domain",
                             [](const PyMachine& self) { return self.machine.gpus_per_domain(); })
      .def_property_readonly("memory_bytes", [](const PyMachine& self) {
        double least = self.machine.section(0).device().memory_bytes;
        for (int s = 1; s < self.machine.num_sections(); ++s) {
          least = std::min(least, self.machine.section(s).device().memory_bytes);
        }
        return least;
      });
}

}  // namespace plancast
