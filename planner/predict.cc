#include "planner/predict.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/body/partition.h"
#include "cost_models/matmul_unit.h"
#include "executor/memory/replay.h"
#include "executor/what_if/slower_choices.h"
#include "graph/dtype.h"
#include "graph/split/op_split.h"
#include "planner/host_memory.h"
#include "planner/plan_graph.h"
#include "planner/uncertainty.h"
#include "planner/warnings.h"
#include "strategy/plan_names.h"

namespace plancast {
namespace {

// Which unit multiplies matrices of `dtype`, with a note where it is another's:
// MFU is a share of that unit's peak.
MatmulUnit UnitFor(const Machine& machine, DType dtype, std::vector<std::string>* notes) {
  const MatmulUnit unit = MatmulUnitFor(machine.device(), dtype);
  if (unit.runs != dtype) {
    notes->push_back(absl::StrCat(machine.device().name, " has no ", DTypeName(dtype),
                                  " units: matrix products run as ", DTypeName(unit.runs),
                                  ", and MFU is a share of that peak"));
  }
  return unit;
}

// The tokens that visit experts, as a share of the experts' places: a model's work
// does not hang on how many there are.
double FilledSlots(const ModelGraph& graph) {
  const auto size = [&](absl::string_view dim) {
    const absl::StatusOr<int> index = graph.FindDim(dim);
    return index.ok() ? static_cast<double>(graph.dims[*index].size) : 0;
  };
  const double places = size("experts") * size("slots");
  return places > 0 ? static_cast<double>(graph.seq) * size("topk") / places : 1;
}

// Matrix products of one sample forward, full attention squares, times three
// for forward and backward (no recompute).
double ModelFlopsPerSample(const ModelGraph& unbound) {
  const ModelGraph graph = unbound.WithBatch(1);
  const double filled = FilledSlots(graph);
  const absl::StatusOr<int> slots = graph.FindDim("slots");
  std::vector<double> copies(graph.bodies.size());
  for (const Segment& segment : graph.segments) {
    copies[segment.body] += static_cast<double>(segment.repeat);
  }
  double flops = 0;
  for (size_t b = 0; b < graph.bodies.size(); ++b) {
    for (const OpNode& op : graph.bodies[b].ops) {
      const OpWork work = WorkOf(*op.rule, FactorExtents(graph, op, *op.rule), 0,
                                 static_cast<int>(op.rule->statements().size()));
      const bool routed = slots.ok() && std::find(op.factor_dims.begin(), op.factor_dims.end(),
                                                  *slots) != op.factor_dims.end();
      const double times = routed ? filled * copies[b] : copies[b];
      for (const Contraction& c : work.contractions) {
        flops += 2.0 * static_cast<double>(c.batch) * static_cast<double>(c.m) *
                 static_cast<double>(c.n) * static_cast<double>(c.k) * times;
      }
    }
  }
  return 3 * flops;
}

// Tensor-core work that the plan really executes, all devices.
double HardwareFlops(const ExecutionGraph& graph) {
  std::vector<double> of_block;
  for (const Block& block : graph.blocks) {
    double flops = 0;
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kKernel) continue;
      const KernelSpec& kernel = graph.kernels[block.spec[t]];
      if (kernel.family == KernelFamily::kGemm || kernel.family == KernelFamily::kAttention ||
          kernel.family == KernelFamily::kConvolution) {
        flops += kernel.flops;
      }
    }
    of_block.push_back(flops);
  }
  double total = 0;
  for (const Program& program : graph.programs) {
    for (const Instance& instance : program.instances) {
      total += of_block[instance.block] * instance.layer_count;
    }
  }
  return total * static_cast<double>(graph.mesh.num_devices()) /
         static_cast<double>(graph.programs.size());
}

void FillMemory(const std::vector<ClassMemory>& memory, const Machine& machine,
                Forecast* forecast) {
  forecast->memory_capacity_bytes = machine.device().capacity_bytes();
  for (const ClassMemory& m : memory) {
    forecast->peak_memory_bytes = std::max(forecast->peak_memory_bytes, m.device);
  }
  forecast->fits =
      static_cast<double>(forecast->peak_memory_bytes) <= forecast->memory_capacity_bytes;
}

void FillTime(const Machine& machine, int64_t makespan_ps, Forecast* forecast) {
  forecast->iteration_time_s = static_cast<double>(makespan_ps) * 1e-12;
  const double device_hours =
      static_cast<double>(machine.num_devices()) * forecast->iteration_time_s / 3600;
  forecast->usd_per_iteration = device_hours * machine.device().usd_per_hour;
  forecast->kwh_per_iteration = device_hours * machine.device().tdp_watts / 1000;
}

void FillWarnings(const Job& job, const Machine& machine, const PlanGraph& plan,
                  Forecast* forecast) {
  forecast->warnings =
      ExtrapolationWarnings(Uncertainty::Shipped(), job.profile, plan.chosen.options,
                            plan.graph->seq, machine, forecast->result);
  const double peak = forecast->peak_flops_per_gpu * static_cast<double>(forecast->devices);
  if (forecast->model_flops > peak * forecast->iteration_time_s) {
    forecast->notes.push_back(
        "MFU is above 1: by its formula attention computes whole squares, of which causal kernels "
        "leave out half; HFU counts what runs");
  }
}

// What is known of a plan without simulating it.
absl::Status Describe(const Job& job, const Machine& machine, const PlanGraph& plan,
                      Session& session, Forecast* forecast) {
  forecast->model = job.model->name();
  forecast->machine = machine.spec().name;
  forecast->strategy = PrintShortForm(job.strategy.plan());
  forecast->profile = job.profile.name;
  forecast->chosen = plan.chosen.chosen;
  forecast->notes = plan.chosen.notes;
  const PlanOptions& chosen = plan.chosen.options;
  forecast->global_batch = chosen.dp * chosen.micro_batch * chosen.micro_batches;
  forecast->seq = plan.graph->seq;
  forecast->devices = machine.num_devices();
  ASSIGN_OR_RETURN(const auto model_flops,
                   session.Memo<double>(absl::StrCat("flops|", plan.graph_key), [&] {
                     return absl::StatusOr<double>(ModelFlopsPerSample(*plan.graph));
                   }));
  forecast->model_flops = *model_flops * static_cast<double>(forecast->global_batch);
  forecast->hardware_flops = HardwareFlops(*plan.execution);
  forecast->flops_formula = "model_full";
  forecast->peak_flops_per_gpu = UnitFor(machine, job.dtype, &forecast->notes).peak_flops;
  return absl::OkStatus();
}

RuntimeParams RuntimeFor(const Job& job, const Machine& machine, const PredictOptions& options) {
  RuntimeParams runtime = RuntimeOf(job.profile);
  runtime.memory = OverheadOn(job.profile, machine);
  runtime.chunk_level = options.chunk_level;
  if (!options.datasheet) return runtime;
  runtime.nominal_links = true;
  runtime.comm_scale = 1;
  runtime.launch_s = runtime.graph_launch_s = runtime.host_sync_s = runtime.iteration_s = 0;
  runtime.interference = runtime.comm_interference = 0;
  return runtime;
}

// The plan, or what it is changed to, and what random iterations of it take.
absl::Status Simulated(const ExecutionGraph& graph, const Machine& machine,
                       const KernelCostModel& costs, const RuntimeParams& runtime,
                       const PredictOptions& options, Forecast* forecast) {
  SimulateOptions simulate;
  simulate.timeline = options.timeline;
  simulate.shortcuts = options.shortcuts;
  const auto run = [&](const ExecutionGraph& graph, const Machine& machine,
                       const RuntimeParams& runtime,
                       const SimulateOptions& simulate) -> absl::Status {
    ASSIGN_OR_RETURN(forecast->result, Execute(graph, machine, costs, runtime, simulate));
    if (options.randomness.samples == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(forecast->distribution,
                     ExecuteSamples(graph, machine, costs, runtime, options.randomness, simulate));
    return absl::OkStatus();
  };
  if (options.what_if.empty()) return run(graph, machine, runtime, simulate);
  ASSIGN_OR_RETURN(const ChangedPlan changed,
                   ChangePlan(options.what_if, graph, machine, runtime, simulate));
  ASSIGN_OR_RETURN(const std::vector<std::string> slower,
                   SlowerChoices(graph, machine, changed.machine, runtime));
  forecast->notes.insert(forecast->notes.end(), slower.begin(), slower.end());
  return run(changed.graph, changed.machine, changed.runtime, changed.options);
}

// One plan of many: it is compiled no further than it fits, and described if wanted.
absl::StatusOr<Forecast> PredictOneOfMany(const Job& job, const Machine& machine,
                                          const KernelCostModel& costs, Session& session,
                                          const PredictOptions& options) {
  const RuntimeParams runtime = RuntimeFor(job, machine, options);
  std::vector<BlockProfile> profiles;
  int64_t most = 0;
  const auto fits = [&](const ExecutionGraph& made, int32_t program) {
    ProfileNewBlocks(made, runtime.memory.allocator, &profiles);
    const int64_t bytes = DeviceBytes(made, program, profiles, runtime.memory);
    most = std::max(most, bytes);
    return static_cast<double>(bytes) <= machine.device().capacity_bytes();
  };
  const absl::StatusOr<PlanGraph> plan =
      DrawAndCompileInto(job, machine, session, fits, options.one_of_many);
  if (absl::IsResourceExhausted(plan.status())) return Forecast();
  RETURN_IF_ERROR(plan.status());

  Forecast forecast;
  bool wanted = true;
  SimulateOptions simulate;
  simulate.shortcuts = options.shortcuts;
  simulate.verified = true;  // as the compiler wrote it
  simulate.wanted = [&](int64_t makespan_ps) {
    FillTime(machine, makespan_ps, &forecast);
    wanted = options.wanted == nullptr || options.wanted(forecast);
    return wanted;
  };
  ASSIGN_OR_RETURN(forecast.result, Execute(*plan->execution, machine, costs, runtime, simulate));
  if (!job.strategy.plan().offload.empty()) {
    const std::vector<ClassMemory> memory = ReplayMemory(*plan->execution, runtime);
    if (!CheckHostMemory(*plan->execution, machine, memory).ok()) return Forecast();
  }
  forecast.memory_capacity_bytes = machine.device().capacity_bytes();
  forecast.peak_memory_bytes = most;
  forecast.fits = true;  // each program was looked at while it was compiled
  if (!wanted) return forecast;
  RETURN_IF_ERROR(Describe(job, machine, *plan, session, &forecast));
  FillInterval(job.profile, &forecast);
  FillWarnings(job, machine, *plan, &forecast);
  return forecast;
}

}  // namespace

RuntimeParams RuntimeOf(const SoftwareProfile& profile) {
  RuntimeParams runtime;
  runtime.launch_s = profile.launch_s;
  runtime.host_sync_s = profile.host_sync_s;
  runtime.cuda_graphs = profile.cuda_graphs;
  runtime.graph_launch_s = profile.graph_launch_s;
  runtime.iteration_s = profile.iteration_s;
  runtime.comm_scale = profile.comm_scale;
  runtime.interference = profile.interference;
  runtime.comm_interference = profile.comm_interference;
  runtime.link_sharing = profile.link_sharing;
  runtime.memory = profile.memory;
  return runtime;
}

MemoryOverhead OverheadOn(const SoftwareProfile& profile, const Machine& machine) {
  MemoryOverhead overhead = profile.memory;
  overhead.capacity_bytes = static_cast<int64_t>(machine.device().capacity_bytes());
  return overhead;
}

void FillInterval(const SoftwareProfile& profile, Forecast* forecast) {
  const Uncertainty& shipped = Uncertainty::Shipped();
  shipped.AddTo(profile, &forecast->result);
  forecast->sigma_relative = CoreScale(forecast->result);
  const TimeInterval interval =
      IntervalOf(forecast->iteration_time_s, forecast->sigma_relative, shipped.slow_tail);
  forecast->interval_s[0] = interval.low;
  forecast->interval_s[1] = interval.high;
}

absl::StatusOr<Forecast> Predict(const Job& job, const Machine& machine,
                                 const KernelCostModel& costs, Session& session,
                                 const PredictOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  if (options.one_of_many != nullptr) {
    ASSIGN_OR_RETURN(Forecast forecast, PredictOneOfMany(job, machine, costs, session, options));
    forecast.simulate_s = seconds();
    return forecast;
  }
  const RuntimeParams runtime = RuntimeFor(job, machine, options);
  ASSIGN_OR_RETURN(const PlanGraph plan, DrawAndCompile(job, machine, session));
  Forecast forecast;
  RETURN_IF_ERROR(Describe(job, machine, plan, session, &forecast));
  const std::vector<ClassMemory> memory = ReplayMemory(*plan.execution, runtime);
  FillMemory(memory, machine, &forecast);
  RETURN_IF_ERROR(CheckHostMemory(*plan.execution, machine, memory));
  if (forecast.fits || !options.memory_only_if_unfit) {
    RETURN_IF_ERROR(Simulated(*plan.execution, machine, costs, runtime, options, &forecast));
    if (options.timeline) forecast.timeline_graph = plan.execution;
    if (options.keep_memory_graph) {
      forecast.memory_graph = plan.execution;
      forecast.memory_overhead = runtime.memory;
    }
    FillTime(machine, forecast.result.makespan_ps, &forecast);
    FillInterval(job.profile, &forecast);
    FillWarnings(job, machine, plan, &forecast);
  }
  forecast.simulate_s = seconds();
  return forecast;
}

}  // namespace plancast
