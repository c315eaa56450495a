#include "graph/execution/execution_graph.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "compiler/session.h"
#include "planner/forecast/job.h"
#include "planner/forecast/plan_graph.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace plancast {
namespace {

namespace py = pybind11;

// The keys are the fields of the classes of plancast/compiled.py.
py::dict TaskOf(const ExecutionGraph& graph, const Block& block, int32_t task) {
  const bool is_kernel = block.kind[task] == TaskKind::kKernel;
  const CommSpec comm = is_kernel ? CommSpec() : graph.comms[block.spec[task]];
  py::tuple axes(comm.axes.size());
  for (size_t i = 0; i < comm.axes.size(); ++i)
    axes[i] = graph.MeshOf(comm).axis(comm.axes[i]).name;
  py::dict out;
  out["label"] = block.label[task];
  out["stream"] = std::string(kStreamNames[block.stream[task]]);
  out["purpose"] = std::string(kPurposeNames[block.purpose[task]]);
  out["kernel"] = is_kernel ? graph.kernels[block.spec[task]].DebugString() : "";
  out["collective"] = is_kernel ? "" : std::string(kCollectiveKindNames[comm.kind]);
  out["bytes"] = comm.bytes;
  out["axes"] = std::move(axes);
  out["peer_offset"] = comm.peer_offset;
  out["reshard"] = is_kernel ? -1 : comm.reshard;
  return out;
}

py::dict BlockOf(const ExecutionGraph& graph, const Block& block) {
  py::dict out;
  py::list tasks;
  for (int32_t t = 0; t < block.size(); ++t) tasks.append(TaskOf(graph, block, t));
  out["name"] = block.name;
  out["tasks"] = std::move(tasks);
  return out;
}

py::dict InstanceOf(const ExecutionGraph& graph, const Instance& instance) {
  py::dict out;
  out["block"] = instance.block;
  out["phase"] = std::string(kPhaseNames[instance.phase]);
  out["micro_batch"] = instance.micro_batch;
  out["first_layer"] = instance.layer_begin;
  out["layers"] = graph.blocks[instance.block].layers;
  out["repeats"] = instance.layer_count;
  if (instance.pairs()) {
    out["forward_micro_batch"] = instance.forward.micro_batch;
    out["forward_first_layer"] = instance.forward.layer_begin;
  }
  return out;
}

py::dict AxesOf(const DeviceMesh& mesh) {
  py::dict axes;
  for (const MeshAxis& axis : mesh.axes()) axes[py::str(axis.name)] = axis.size;
  return axes;
}

// Per way what goes from device to device.
py::dict ReshardOf(const Reshard& reshard) {
  py::dict ways;
  for (const Reshard::Way& way : reshard.ways) {
    py::tuple flows(way.flows.size());
    for (size_t f = 0; f < way.flows.size(); ++f) {
      flows[f] = py::make_tuple(way.flows[f].from, way.flows[f].to, way.flows[f].bytes);
    }
    ways[py::str(way.name)] = std::move(flows);
  }
  return ways;
}

py::dict ProgramOf(const ExecutionGraph& graph, const Program& program) {
  py::dict out, where, bytes;
  for (const auto& [axis, coordinate] : program.where) {
    where[py::str(graph.MeshOf(program).axis(axis).name)] = coordinate;
  }
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    const std::string name(kMemoryKindNames[static_cast<MemoryKind>(kind)]);
    bytes[py::str(name)] = program.static_bytes[kind];
  }
  py::list instances;
  for (const Instance& instance : program.instances) instances.append(InstanceOf(graph, instance));
  out["name"] = program.name;
  out["axes"] = AxesOf(graph.MeshOf(program));
  out["shift"] = graph.ShiftOf(program);
  out["where"] = std::move(where);
  out["bytes"] = std::move(bytes);
  out["instances"] = std::move(instances);
  return out;
}

py::dict GraphOf(const ExecutionGraph& graph) {
  py::dict out;
  py::list blocks, programs, reshards;
  for (const Reshard& reshard : graph.reshards) reshards.append(ReshardOf(reshard));
  for (const Block& block : graph.blocks) blocks.append(BlockOf(graph, block));
  for (const Program& program : graph.programs) programs.append(ProgramOf(graph, program));
  out["axes"] = AxesOf(graph.mesh);
  out["reshards"] = std::move(reshards);
  out["blocks"] = std::move(blocks);
  out["programs"] = std::move(programs);
  return out;
}

py::dict CompileGraph(const PyModel& model, const PyMachine& machine, const PyStrategy& strategy,
                      std::optional<int64_t> batch, const std::string& dtype,
                      const std::string& profile, const PyPrecision& precision) {
  Job job = MakeJob(model, batch, dtype, profile, precision);
  job.strategy = strategy.tree;
  const PlanGraph plan = ValueOrThrow([&]() -> absl::StatusOr<PlanGraph> {
    py::gil_scoped_release release;
    Session session;
    ASSIGN_OR_RETURN(const auto costs, SessionCosts().For(machine.machine));
    const Pricing pricing(*costs);
    return DrawAndCompile(job, machine.machine, session, &pricing);
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
