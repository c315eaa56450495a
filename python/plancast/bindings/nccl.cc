#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/mixed_machine.h"
#include "cluster/topology/machine_topology.h"
#include "cluster/topology/nccl_version.h"
#include "cluster/topology/skeleton.h"
#include "cluster/topology/topology_machine.h"
#include "collectives/nccl/search.h"
#include "interop/nccl/graph_xml.h"
#include "interop/nccl/search_json.h"
#include "interop/nccl/topology_xml.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// A topology file, or a machine as one.
struct PyTopology {
  SystemElement system;
  std::string name;
  int count = 1;  // of what `system` describes
  std::vector<std::string> assumptions;
};

NcclSearchResult Search(const PyTopology& self, int count, const std::string& version,
                        bool collnet) {
  const NcclVersion release = ValueOrThrow(ParseNcclVersion(version));
  absl::StatusOr<NcclSearchResult> search;
  {
    py::gil_scoped_release released;
    search = SearchGraphs(self.system, count, release, {collnet});
  }
  if (search.ok()) return *std::move(search);
  return ValueOrThrow(absl::StatusOr<NcclSearchResult>(absl::Status(
      search.status().code(), absl::StrCat("`", self.name, "`: ", search.status().message()))));
}

}  // namespace

void BindNccl(py::module_& m) {
  py::class_<PyTopology>(m, "NcclTopology")
      .def_static(
          "read",
          [](const std::string& text, const std::string& what) {
            return PyTopology{Unlocked([&] { return ReadNcclTopology(text, what); }), what, 1, {}};
          },
          py::arg("text"), py::arg("what"))
      .def_static(
          "of_machine",
          [](const PyMachine& machine) {
            ThrowIfError(CheckNotMixed(machine.machine, "A topology as NCCL sees it"));
            MachineTopology topology = TopologyOf(machine.machine);
            return PyTopology{std::move(topology.system), machine.machine.spec().name,
                              topology.hosts, std::move(topology.assumptions)};
          },
          py::arg("machine"))
      .def_property_readonly("count", [](const PyTopology& self) { return self.count; })
      .def_property_readonly("assumptions", [](const PyTopology& self) { return self.assumptions; })
      .def("missing", [](const PyTopology& self) { return WhatIsMissing(self.system); })
      .def(
          "filled",
          [](const PyTopology& self, std::optional<int> sm, int nvlinks,
             std::optional<int> net_mbit, bool gdr) {
            PyTopology filled = self;
            const std::vector<std::string> added =
                Fill({sm, nvlinks, net_mbit, gdr}, filled.system);
            for (const std::string& what : added) {
              filled.assumptions.push_back(absl::StrCat("Added ", what, "."));
            }
            return filled;
          },
          py::arg("sm"), py::arg("nvlinks"), py::arg("net_mbit"), py::arg("gdr"))
      .def("to_xml", [](const PyTopology& self) { return WriteNcclTopology(self.system); })
      .def(
          "search_json",
          [](const PyTopology& self, int count, const std::string& version, bool collnet) {
            const NcclSearchResult search = Search(self, count, version, collnet);
            return Unlocked([&] { return NcclSearchJson(search, self.name); });
          },
          py::arg("count"), py::arg("version"), py::arg("collnet"))
      .def(
          "graphs_xml",
          [](const PyTopology& self, int count, const std::string& version, bool collnet) {
            return WriteNcclGraphs(Search(self, count, version, collnet));
          },
          py::arg("count"), py::arg("version"), py::arg("collnet"))
      .def(
          "machine",
          [](const PyTopology& self, int64_t count, const std::string& fabric) {
            TopologyMachine made = ValueOrThrow(MachineOf(self.system, count, fabric, self.name));
            return std::make_pair(PyMachine{std::move(made.machine)}, std::move(made.assumptions));
          },
          py::arg("count"), py::arg("fabric"))
      .def(py::pickle(
          [](const PyTopology& self) {
            return py::make_tuple(WriteNcclTopology(self.system), self.name, self.count,
                                  self.assumptions);
          },
          [](const py::tuple& fields) {
            const auto text = fields[0].cast<std::string>(), name = fields[1].cast<std::string>();
            return PyTopology{ValueOrThrow(ReadNcclTopology(text, name)), name,
                              fields[2].cast<int>(), fields[3].cast<std::vector<std::string>>()};
          }));
}

}  // namespace plancast
