#include "graph/execution/execution_graph.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/session.h"
#include "executor/comm_uses.h"
#include "executor/realise.h"
#include "planner/forecast/job.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/pricing.h"
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

// What a device is given to do in an iteration, and what it takes alone.
struct Work {
  // Equal kernels or communications of one label and purpose.
  using Key = std::tuple<Purpose, std::string, bool, int32_t, int32_t>;
  struct Item {
    int64_t count = 0;
    int64_t ps = 0;       // of one, alone
    int32_t outcome = 0;  // of a communication: into CommPricer::realised
  };
  std::map<Key, Item> items;  // purpose, label, whether a kernel, its spec, its use
};

// The link class that a communication fills most, or "".
std::string BusiestLink(const Machine& machine, const RealisedCollective& realised) {
  std::string name;
  double most = 0;
  for (const LinkLoad& load : realised.loads) {
    const LinkClass& link = machine.link_classes()[load.link_class];
    const double seconds =
        static_cast<double>(std::max(load.coefficient_q20, load.ReceivedQ20())) / link.bytes_per_s;
    if (seconds <= most) continue;
    most = seconds;
    name = link.name;
  }
  return name;
}

// Of one device, which runs `program`.
absl::StatusOr<Work> WorkOf(const ExecutionGraph& graph, const Machine& machine,
                            const CommUses& uses, int32_t program, int64_t device,
                            KernelPrices& prices, CommPricer& comms) {
  Work out;
  const int32_t row =
      prices.RowFor({machine.ComputeScale(device), graph.skew.PlaceOf(graph.mesh, device),
                     machine.SectionOf(device)});
  const int64_t* const alone = prices.AllOf(row);
  for (const Instance& instance : graph.programs[program].instances) {
    const Block& block = graph.blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      const bool is_kernel = block.kind[t] == TaskKind::kKernel;
      const bool meets = instance.rendezvous >= 0 && t == block.rendezvous_task;
      const int32_t use = is_kernel ? -1
                          : meets   ? uses.of_rendezvous[instance.rendezvous]
                                    : uses.OfComm(program, block.spec[t]);
      Work::Item& item =
          out.items[{block.purpose[t], block.label[t], is_kernel, block.spec[t], use}];
      if (item.count == 0 && is_kernel) item.ps = alone[block.spec[t]];
      if (item.count == 0 && use >= 0) {
        const CommUse& own = uses.uses[use];
        // Where stages have meshes of their own, the first group stands for all.
        const GroupPattern group =
            graph.stage_meshes.empty() ? GroupAround(graph, own, device) : own.group;
        ASSIGN_OR_RETURN(item.outcome, comms.Price(own.comm, group));
        item.ps = AloneTime(machine, comms.realised()[item.outcome]);
      }
      item.count += instance.layer_count;
    }
  }
  return out;
}

// The keys are the fields of the classes of plancast/explaining/work.py.
py::list WorkItems(const ExecutionGraph& graph, const Machine& machine, const CommUses& uses,
                   const KernelPrices& prices, const CommPricer& comms, const Work& work) {
  py::list out;
  for (const auto& [key, item] : work.items) {
    const auto& [purpose, label, is_kernel, spec, use] = key;
    py::dict fields;
    fields["purpose"] = std::string(kPurposeNames[purpose]);
    fields["label"] = label;
    fields["count"] = item.count;
    fields["ps"] = item.ps * item.count;
    if (is_kernel) {
      const KernelSpec& kernel = graph.kernels[spec];
      fields["kind"] = std::string(kKernelFamilyNames[kernel.family]);
      fields["detail"] = kernel.DebugString();
      fields["factor"] = prices.costs[spec].factor;
      fields["sigma"] = prices.costs[spec].factor_sigma;
      fields["flops"] = kernel.flops * static_cast<double>(item.count);
      fields["bytes"] = (kernel.read_bytes + kernel.write_bytes) * static_cast<double>(item.count);
    } else {
      const CommSpec& comm = graph.comms[spec];
      fields["kind"] = std::string(kCollectiveKindNames[comm.kind]);
      fields["flops"] = 0.0;
      fields["bytes"] = static_cast<double>(comm.bytes) * static_cast<double>(item.count);
      fields["members"] = use < 0 ? int64_t{1} : uses.uses[use].group.size();
      if (use >= 0) {
        const RealisedCollective& realised = comms.realised()[item.outcome];
        fields["algorithm"] = realised.algorithm;
        fields["factor"] = realised.factor;
        fields["sigma"] = realised.factor_sigma;
        fields["link"] = BusiestLink(machine, realised);
      }
    }
    out.append(std::move(fields));
  }
  return out;
}

// Of each of these devices, behind the programs that they run, its work.
py::list PlanWork(const PyModel& model, const PyMachine& machine, const PyStrategy& strategy,
                  const PySession& session, const std::vector<std::pair<int32_t, int64_t>>& devices,
                  std::optional<int64_t> batch, const std::string& dtype,
                  const std::string& profile, const PyPrecision& precision,
                  const PyGraphs& cuda_graphs, bool datasheet, bool chunk_level) {
  Job job = MakeJob(model, batch, dtype, profile, precision, cuda_graphs);
  job.strategy = strategy.tree;
  py::list out;
  const auto list = [&](const Pricing& pricing) -> absl::Status {
    RuntimeParams runtime = pricing.Runtime(job.profile, machine.machine);
    runtime.chunk_level = chunk_level;
    runtime.shares_links = true;  // says which; alone it takes as long
    ASSIGN_OR_RETURN(const PlanGraph plan,
                     DrawAndCompile(job, machine.machine, *session.session, &pricing));
    const ExecutionGraph& graph = *plan.execution;
    ASSIGN_OR_RETURN(const CommUses uses, FindCommUses(graph));
    ASSIGN_OR_RETURN(KernelPrices prices, PriceKernels(graph, machine.machine, pricing.kernels()));
    CommPricer comms(graph, machine.machine, runtime);
    std::vector<Work> work;
    for (const auto& [program, device] : devices) {
      if (program < 0 || program >= static_cast<int32_t>(graph.programs.size()) || device < 0 ||
          device >= machine.machine.num_devices()) {
        return absl::InvalidArgumentError("the device class is of another plan.");
      }
      ASSIGN_OR_RETURN(Work own,
                       WorkOf(graph, machine.machine, uses, program, device, prices, comms));
      work.push_back(std::move(own));
    }
    py::gil_scoped_acquire acquire;
    for (const Work& own : work) {
      out.append(WorkItems(graph, machine.machine, uses, prices, comms, own));
    }
    return absl::OkStatus();
  };
  const absl::Status status = [&]() -> absl::Status {
    py::gil_scoped_release release;
    if (datasheet) return list(Pricing::Datasheet());
    ASSIGN_OR_RETURN(const auto costs, session.costs->For(machine.machine));
    return list(session.PricedBy(*costs));
  }();
  ThrowIfError(status);
  return out;
}

}  // namespace

void BindExecutionGraph(py::module_& m) {
  m.def("plan_work", &PlanWork, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::arg("session"), py::arg("devices"), py::kw_only(), py::arg("batch"), py::arg("dtype"),
        py::arg("profile"), py::arg("precision"), py::arg("cuda_graphs"), py::arg("datasheet"),
        py::arg("chunk_level"));
  m.def("execution_graph", &CompileGraph, py::arg("model"), py::arg("machine"), py::arg("strategy"),
        py::kw_only(), py::arg("batch"), py::arg("dtype"), py::arg("profile"),
        py::arg("precision"));
}

}  // namespace plancast
