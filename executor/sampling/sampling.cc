#include "executor/sampling/sampling.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "executor/comm_uses.h"
#include "executor/contention/interference.h"
#include "executor/fold/fold.h"
#include "executor/realise.h"
#include "executor/runtime.h"
#include "executor/sampling/random_numbers.h"
#include "executor/simulate/index/task_index.h"
#include "executor/simulate/kernel_jitter.h"
#include "executor/simulate/simulate.h"

namespace plancast {
namespace {

// Runs sample(0), sample(1), ... on several threads; the error of the first that
// fails.
absl::Status ForEachSample(const Randomness& randomness,
                           const std::function<absl::StatusOr<int64_t>(int64_t)>& sample,
                           std::vector<int64_t>& result) {
  result.assign(randomness.samples, 0);
  std::vector<absl::Status> errors(randomness.samples);
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t i = next++; i < randomness.samples; i = next++) {
      absl::StatusOr<int64_t> time = sample(i);
      if (time.ok()) {
        result[i] = *time;
      } else {
        errors[i] = time.status();
      }
    }
  };
  std::vector<std::thread> others;
  const int64_t threads = std::min<int64_t>(randomness.threads, randomness.samples);
  for (int64_t t = 1; t < threads && StartThread(work, others); ++t) {
  }
  work();
  for (std::thread& thread : others) thread.join();
  for (absl::Status& error : errors) RETURN_IF_ERROR(error);
  return absl::OkStatus();
}

bool IsStraggler(const Randomness& randomness, const RandomNumbers& numbers, int64_t device) {
  return numbers.Uniform(Draw::kStraggler, device, 0) < randomness.straggler_probability;
}

// The machine with its stragglers of one iteration.
absl::StatusOr<Machine> WithStragglers(const Machine& machine, int64_t devices,
                                       const Randomness& randomness, const RandomNumbers& numbers) {
  Machine::Spec spec = machine.spec();
  std::vector<Machine::DeviceOverride> slow;
  for (int64_t device = 0; device < devices; ++device) {
    if (!IsStraggler(randomness, numbers, device)) continue;
    slow.push_back({device, machine.ComputeScale(device) * randomness.straggler_speed});
    auto& known = spec.device_overrides;
    known.erase(std::remove_if(known.begin(), known.end(),
                               [&](const auto& other) { return other.device == device; }),
                known.end());
  }
  spec.device_overrides.insert(spec.device_overrides.end(), slow.begin(), slow.end());
  return Machine::Create(std::move(spec));
}

class Jitter : public KernelJitter {
 public:
  Jitter(double sigma, const RandomNumbers& numbers, const SimGraph& sim)
      : sigma_(sigma), numbers_(numbers), sim_(sim) {}

  int64_t DurationPs(int32_t entity, int64_t issue, int64_t nominal_ps) const override {
    const double noise =
        numbers_.Noise(sigma_, Draw::kKernel, sim_.entities[entity].representative, issue);
    return std::llround(static_cast<double>(nominal_ps) * noise);
  }
  double CommFactor(int32_t group, int64_t occurrence) const override {
    return numbers_.Noise(sigma_, Draw::kComm, group, occurrence);
  }

 private:
  const double sigma_;
  const RandomNumbers& numbers_;
  const SimGraph& sim_;
};

absl::Status CheckSize(const ExecutionGraph& graph) {
  int64_t tasks = 0;
  const int64_t devices = graph.mesh.num_devices();
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    tasks += graph.DevicesOf(graph.programs[p]) * UnfoldedTasks(graph, static_cast<int>(p));
  }
  if (tasks <= kMostJitteredTasks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("jitter runs every device by itself, and this plan has ", tasks, " tasks on ",
                   devices, " devices; the most is ", kMostJitteredTasks,
                   ". Take fewer replicas or micro-batches, or stragglers alone, which fold."));
}

// Every device by itself.
absl::StatusOr<std::vector<int64_t>> Jittered(const ExecutionGraph& graph, const Machine& machine,
                                              const KernelCostModel& costs,
                                              const RuntimeParams& runtime,
                                              const Randomness& randomness,
                                              const SimulateOptions& options) {
  RETURN_IF_ERROR(graph.Verify());
  RETURN_IF_ERROR(CheckSize(graph));
  ASSIGN_OR_RETURN(const CommUses uses, FindCommUses(graph));
  ASSIGN_OR_RETURN(KernelPrices prices, PriceKernels(graph, machine, costs, runtime.gather_skew));
  prices.Scale(options.kernel_time);
  CommPricer comms(graph, machine, runtime);
  comms.Scale(options.comm_time);
  RETURN_IF_ERROR(CheckFits(graph, machine));
  ASSIGN_OR_RETURN(const SimGraph alike,
                   FoldByRefinement({graph, uses, machine, comms, prices}, /*discrete=*/true));
  ASSIGN_OR_RETURN(const std::vector<double> comm_slowdown,
                   PriceBothWays(graph, uses, machine, runtime, comms, prices));
  ASSIGN_OR_RETURN(
      const TaskIndex index,
      TaskIndex::Create(graph, std::vector<bool>(graph.programs.size(), runtime.cuda_graphs)));
  std::vector<int32_t> slow_rows;  // per entity, as a straggler
  for (const SimGraph::Entity& entity : alike.entities) {
    const double scale = machine.ComputeScale(entity.representative);
    slow_rows.push_back(
        prices.RowFor({scale * randomness.straggler_speed, entity.place, entity.kind}));
  }
  const std::vector<HostParams> hosts(graph.programs.size(), HostParamsOf(runtime));
  const auto sample = [&](int64_t number) -> absl::StatusOr<int64_t> {
    const RandomNumbers numbers(randomness.seed, number);
    SimGraph sim = alike;
    for (size_t e = 0; e < sim.entities.size(); ++e) {
      if (!IsStraggler(randomness, numbers, sim.entities[e].representative)) continue;
      sim.entities[e].price_row = slow_rows[e];
    }
    const Jitter jitter(randomness.jitter, numbers, sim);
    SimInput input{graph,
                   uses,
                   sim,
                   index,
                   prices,
                   comms.realised(),
                   hosts,
                   SlowdownQ20(runtime),
                   options.shortcuts};
    input.jitter = &jitter;
    input.link_sharing = runtime.link_sharing;
    input.comm_slowdown_of_kind_q20 = SlowdownsQ20(comm_slowdown);
    ASSIGN_OR_RETURN(const SimTrace trace, Simulate(input));
    return trace.makespan_ps;
  };
  std::vector<int64_t> times;
  RETURN_IF_ERROR(ForEachSample(randomness, sample, times));
  return times;
}

}  // namespace

absl::StatusOr<Distribution> ExecuteSamples(const ExecutionGraph& graph, const Machine& machine,
                                            const KernelCostModel& costs,
                                            const RuntimeParams& runtime,
                                            const Randomness& randomness,
                                            const SimulateOptions& options) {
  RETURN_IF_ERROR(randomness.Check());
  Distribution distribution;
  distribution.drawn = randomness;
  if (randomness.jitter > 0) {
    ASSIGN_OR_RETURN(distribution.samples_ps,
                     Jittered(graph, machine, costs, runtime, randomness, options));
    return distribution;
  }
  SimulateOptions silent = options;
  silent.timeline = false;
  const auto sample = [&](int64_t number) -> absl::StatusOr<int64_t> {
    const RandomNumbers numbers(randomness.seed, number);
    ASSIGN_OR_RETURN(const Machine drawn,
                     WithStragglers(machine, graph.mesh.num_devices(), randomness, numbers));
    ASSIGN_OR_RETURN(const SimResult result, Execute(graph, drawn, costs, runtime, silent));
    return result.makespan_ps;
  };
  RETURN_IF_ERROR(ForEachSample(randomness, sample, distribution.samples_ps));
  return distribution;
}

}  // namespace plancast
