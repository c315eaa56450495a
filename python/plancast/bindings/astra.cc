// Chakra traces and ASTRA-sim's cases.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "interop/astra/case_workloads.h"
#include "interop/astra/comm_groups_file.h"
#include "interop/astra/network_file.h"
#include "interop/astra/simulator/simulate_astra.h"
#include "interop/astra/system_file.h"
#include "interop/astra/text_workload.h"
#include "interop/astra/workload_from_traces.h"
#include "interop/chakra/chakra_trace.h"
#include "interop/chakra/verify_traces.h"
#include "python/plancast/bindings/chakra_traces.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

struct PyAstraCases {
  std::vector<AstraCase> cases;
};

// The result, or why there is none.
std::pair<std::optional<AstraResult>, std::string> RunCase(const PyAstraCases& self, size_t index) {
  const AstraCase& c = self.cases.at(index);
  auto result = [&]() -> absl::StatusOr<AstraResult> {
    py::gil_scoped_release release;
    ASSIGN_OR_RETURN(const AstraCaseInputs inputs, InputsOfCase(c));
    return SimulateAstra(inputs.workload, c.network, inputs.system);
  }();
  if (result.ok()) return {*std::move(result), ""};
  return {std::nullopt, std::string(result.status().message())};
}

// (text, what it is called in errors).
using PyText = std::pair<std::string, std::string>;

absl::StatusOr<AstraResult> RunTraces(const PyTraces& traces, const PyText& network_text,
                                      const PyText& system_text,
                                      const std::optional<PyText>& groups_text, bool aware,
                                      int queues, const PyTraces* custom) {
  ASSIGN_OR_RETURN(AstraNetwork network, ReadAstraNetwork(network_text.first, network_text.second));
  network.congestion_aware = aware;
  network.queues_per_dim = queues;
  ASSIGN_OR_RETURN(AstraSystemFile file, ReadAstraSystem(system_text.first, system_text.second));
  CommGroups groups;
  if (groups_text.has_value()) {
    ASSIGN_OR_RETURN(groups, ReadCommGroups(groups_text->first, groups_text->second));
  }
  RETURN_IF_ERROR(VerifyTraces(traces.Pointers(), groups));
  ASSIGN_OR_RETURN(const AstraWorkload workload, AstraWorkloadFrom(traces.Pointers(), groups));
  if (custom != nullptr) {
    for (const ChakraTrace* trace : custom->Pointers()) {
      ASSIGN_OR_RETURN(AstraProgram program, AstraCustomFrom(*trace),
                       _ << "`" << file.custom_prefix << "`");
      file.system.custom.push_back(std::move(program));
    }
  }
  return SimulateAstra(workload, network, file.system);
}

// A text workload, which all ranks run.
struct PyTextWorkload {
  AstraProgram program;
};

absl::StatusOr<AstraResult> RunText(const PyTextWorkload& self, const PyText& network_text,
                                    const PyText& system_text, bool aware, int queues) {
  ASSIGN_OR_RETURN(AstraNetwork network, ReadAstraNetwork(network_text.first, network_text.second));
  network.congestion_aware = aware;
  network.queues_per_dim = queues;
  ASSIGN_OR_RETURN(const AstraSystemFile file,
                   ReadAstraSystem(system_text.first, system_text.second));
  AstraWorkload workload;
  workload.programs = {self.program};
  workload.program_of.assign(network.npus(), 0);
  return SimulateAstra(workload, network, file.system);
}

// Kind, microseconds of compute or none, bytes of a collective or none.
py::list NodesOf(const PyTextWorkload& self) {
  py::list out;
  for (const AstraNode& node : self.program.nodes) {
    if (node.kind == AstraNodeKind::kCompute) {
      out.append(py::make_tuple("compute", node.duration_us, py::none()));
    } else {
      out.append(py::make_tuple(std::string(kAstraCollectiveNames[node.collective]), py::none(),
                                node.bytes));
    }
  }
  return out;
}

}  // namespace

std::vector<const ChakraTrace*> PyTraces::Pointers() const {
  std::vector<const ChakraTrace*> pointers;
  for (const auto& trace : of_rank) pointers.push_back(trace.get());
  return pointers;
}

absl::Status TraceSet::Add(const std::string& what, std::string bytes) {
  constexpr size_t kMostNodes = 16'000'000;  // that are run
  const auto found = known_.try_emplace(std::move(bytes)).first;
  std::shared_ptr<const ChakraTrace>& trace = found->second;
  if (trace == nullptr) {
    ASSIGN_OR_RETURN(const EtFile file, ReadEtFile(found->first, what, left_));
    ASSIGN_OR_RETURN(ChakraTrace read, ChakraTraceFrom(file, what));
    trace = std::make_shared<const ChakraTrace>(std::move(read));
  }
  nodes_ += trace->nodes.size();
  if (nodes_ > kMostNodes) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the ranks so far have ", nodes_,
                                                   " nodes together; at most ", kMostNodes,
                                                   " are run"));
  }
  traces_.of_rank.push_back(trace);
  return absl::OkStatus();
}

void BindAstra(py::module_& m) {
  py::class_<AstraResult>(m, "AstraResult")
      .def_readonly("finish_ns", &AstraResult::finish_ns)
      .def_readonly("compute_ns", &AstraResult::compute_ns)
      .def_readonly("events", &AstraResult::events)
      .def_readonly("messages", &AstraResult::messages)
      .def_readonly("collectives", &AstraResult::collectives);
  py::class_<PyAstraCases>(m, "AstraCases")
      .def_static(
          "read",
          [](const std::string& csv, const std::string& what) {
            return PyAstraCases{ValueOrThrow(ReadAstraCases(csv, what))};
          },
          py::arg("csv"), py::arg("what"))
      .def("__len__", [](const PyAstraCases& self) { return self.cases.size(); })
      // name, status, finish_min_ns, finish_max_ns as the table has them.
      .def("row",
           [](const PyAstraCases& self, size_t index) {
             const AstraCase& c = self.cases.at(index);
             return py::make_tuple(c.name, c.status, c.finish_min_ns, c.finish_max_ns);
           })
      .def("run", &RunCase);
  py::class_<PyTraces>(m, "ChakraTraces")
      .def_static(
          "read",
          [](const py::iterable& files) {
            TraceSet set;
            for (const py::handle& entry : files) {
              auto [what, bytes] = entry.cast<std::pair<std::string, std::string>>();
              absl::Status status;
              {
                py::gil_scoped_release release;
                status = set.Add(what, std::move(bytes));
              }
              ThrowIfError(status);
            }
            return std::move(set).Done();
          },
          py::arg("files"))
      .def_property_readonly("ranks", [](const PyTraces& self) { return self.of_rank.size(); })
      .def_property_readonly("notes", [](const PyTraces& self) { return NotesOf(self.Pointers()); })
      .def_property_readonly("nodes",
                             [](const PyTraces& self) {
                               size_t nodes = 0;
                               for (const auto& trace : self.of_rank) nodes += trace->nodes.size();
                               return nodes;
                             })
      .def(
          "run_astra",
          [](const PyTraces& self, const PyText& network, const PyText& system,
             const std::optional<PyText>& groups, bool aware, int queues, const PyTraces* custom) {
            auto result = [&] {
              py::gil_scoped_release release;
              return RunTraces(self, network, system, groups, aware, queues, custom);
            }();
            return ValueOrThrow(std::move(result));
          },
          py::arg("network"), py::arg("system"), py::arg("groups"), py::kw_only(), py::arg("aware"),
          py::arg("queues"), py::arg("custom"));
  py::class_<PyTextWorkload>(m, "TextWorkload")
      .def_static(
          "read",
          [](const std::string& text, const std::string& what) {
            return PyTextWorkload{Unlocked([&] { return ReadTextWorkload(text, what); })};
          },
          py::arg("text"), py::arg("what"))
      .def("nodes", &NodesOf)
      .def(
          "run_astra",
          [](const PyTextWorkload& self, const PyText& network, const PyText& system, bool aware,
             int queues) {
            return Unlocked([&] { return RunText(self, network, system, aware, queues); });
          },
          py::arg("network"), py::arg("system"), py::kw_only(), py::arg("aware"),
          py::arg("queues"));
  m.def(
      "astra_custom_prefix",
      [](const std::string& json, const std::string& what) {
        return ValueOrThrow(ReadAstraSystem(json, what)).custom_prefix;
      },
      py::arg("json"), py::arg("what"));
}

}  // namespace plancast
