#include "graph/execution/execution_graph.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/session.h"
#include "planner/forecast/job.h"
#include "planner/forecast/plan_graph.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace plancast {
namespace {

namespace py = pybind11;

// (label, stream, purpose, kernel or empty, collective or empty, bytes, axes, peer offset).
using TaskRow = std::tuple<std::string, std::string, std::string, std::string, std::string, int64_t,
                           std::vector<std::string>, int>;

TaskRow RowOf(const ExecutionGraph& graph, const Block& block, int32_t task) {
  const std::string stream(kStreamNames[block.stream[task]]);
  const std::string purpose(kPurposeNames[block.purpose[task]]);
  if (block.kind[task] == TaskKind::kKernel) {
    return {block.label[task], stream, purpose, graph.kernels[block.spec[task]].DebugString(),
            "",                0,      {},      0};
  }
  const CommSpec& comm = graph.comms[block.spec[task]];
  std::vector<std::string> axes;
  for (int axis : comm.axes) axes.push_back(graph.mesh.axis(axis).name);
  return {block.label[task],
          stream,
          purpose,
          "",
          std::string(kCollectiveKindNames[comm.kind]),
          comm.bytes,
          std::move(axes),
          comm.peer_offset};
}

py::dict BlockOf(const ExecutionGraph& graph, const Block& block) {
  py::dict out;
  out["name"] = block.name;
  std::vector<TaskRow> tasks;
  for (int32_t t = 0; t < block.size(); ++t) tasks.push_back(RowOf(graph, block, t));
  out["tasks"] = std::move(tasks);
  return out;
}

py::dict ProgramOf(const ExecutionGraph& graph, const Program& program) {
  py::dict out;
  out["name"] = program.name;
  std::map<std::string, int64_t> where, bytes;
  for (const auto& [axis, coordinate] : program.where) {
    where[std::string(graph.mesh.axis(axis).name)] = coordinate;
  }
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    bytes[std::string(kMemoryKindNames[static_cast<MemoryKind>(kind)])] =
        program.static_bytes[kind];
  }
  out["where"] = std::move(where);
  out["bytes"] = std::move(bytes);
  // (block, phase, micro-batch, first layer, layers of a repeat, repeats).
  std::vector<std::tuple<int32_t, std::string, int32_t, int32_t, int32_t, int32_t>> instances;
  for (const Instance& i : program.instances) {
    instances.emplace_back(i.block, std::string(kPhaseNames[i.phase]), i.micro_batch,
                           i.layer_begin, graph.blocks[i.block].layers, i.layer_count);
  }
  out["instances"] = std::move(instances);
  return out;
}

py::dict GraphOf(const ExecutionGraph& graph) {
  py::dict out;
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const MeshAxis& axis : graph.mesh.axes()) axes.emplace_back(axis.name, axis.size);
  out["axes"] = std::move(axes);
  py::list blocks, programs;
  for (const Block& block : graph.blocks) blocks.append(BlockOf(graph, block));
  for (const Program& program : graph.programs) programs.append(ProgramOf(graph, program));
  out["blocks"] = std::move(blocks);
  out["programs"] = std::move(programs);
  return out;
}

py::dict CompileGraph(const PyModel& model, const PyMachine& machine, const PyStrategy& strategy,
                      std::optional<int64_t> batch, const std::string& dtype,
                      const std::string& profile, const PyPrecision& precision) {
  Job job = MakeJob(model, batch, dtype, profile, precision);
  job.strategy = strategy.tree;
  const PlanGraph plan = ValueOrThrow([&] {
    py::gil_scoped_release release;
    Session session;
    return DrawAndCompile(job, machine.machine, session);
  }());
  return GraphOf(*plan.execution);
}

}  // namespace

void BindExecutionGraph(py::module_& m) {
  m.def("execution_graph", &CompileGraph, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"));
}

}  // namespace plancast
