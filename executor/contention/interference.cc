#include "executor/contention/interference.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "collectives/group_shape.h"
#include "collectives/protocol_cost.h"
#include "collectives/realise.h"
#include "collectives/traffic.h"
#include "executor/runtime.h"
#include "graph/execution/program_devices.h"

namespace plancast {
namespace {

// Less than that is less than the footprints are known by.
constexpr double kLeastCommSlowdown = 1.01;

// Whether a kernel may run alongside task `t`: of the streams that feed kernels, the
// next kernel must not wait for it.
bool RunsBesideKernels(const ExecutionGraph& graph, const Block& block, int32_t t) {
  if (block.kind[t] != TaskKind::kComm || block.stream[t] == StreamKind::kCompute) return false;
  if (IsOnHost(graph.comms[block.spec[t]].kind)) return false;
  if (block.stream[t] != StreamKind::kModelComm && block.stream[t] != StreamKind::kExpertComm) {
    return true;
  }
  for (int32_t next = t + 1; next < block.size(); ++next) {
    if (block.kind[next] != TaskKind::kKernel) continue;
    const auto begin = block.deps.begin() + block.dep_begin[next];
    const auto end = block.deps.begin() + block.dep_begin[next + 1];
    return std::find(begin, end, t) == end;
  }
  return false;
}

// How often each use runs alongside kernels, over all programs.
std::vector<int64_t> CountUses(const ExecutionGraph& graph, const CommUses& uses) {
  std::vector<std::vector<int32_t>> beside(graph.blocks.size());  // tasks
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    for (int32_t t = 0; t < graph.blocks[b].size(); ++t) {
      if (RunsBesideKernels(graph, graph.blocks[b], t)) beside[b].push_back(t);
    }
  }
  std::vector<int64_t> counts(uses.uses.size());
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    for (const Instance& instance : graph.programs[p].instances) {
      const Block& block = graph.blocks[instance.block];
      for (const int32_t t : beside[instance.block]) {
        const int32_t use = t == block.rendezvous_task
                                ? uses.of_rendezvous[instance.rendezvous]
                                : uses.OfComm(static_cast<int32_t>(p), block.spec[t]);
        counts[use] += instance.layer_count;
      }
    }
  }
  return counts;
}

// What every kernel takes alone over all programs on one kind of device, seconds.
std::vector<double> SecondsOfKernels(const ExecutionGraph& graph, const KernelPrices& prices,
                                     int kind) {
  std::vector<int64_t> repeats(graph.blocks.size());
  for (const Program& program : graph.programs) {
    for (const Instance& instance : program.instances) {
      repeats[instance.block] += instance.layer_count;
    }
  }
  std::vector<int64_t> counts(graph.kernels.size());
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] == TaskKind::kKernel) counts[block.spec[t]] += repeats[b];
    }
  }
  std::vector<double> seconds;
  for (size_t k = 0; k < counts.size(); ++k) {
    seconds.push_back(static_cast<double>(counts[k]) *
                      prices.Cost(kind, static_cast<int32_t>(k)).seconds_alone);
  }
  return seconds;
}

// The group of a use around the first device of the section that takes part; if none does,
// its first.
GroupPattern GroupIn(const ExecutionGraph& graph, const CommUse& use, const Machine& machine,
                     int section) {
  GroupPattern group = use.group;
  const bool regular = graph.stage_meshes.empty();
  if (use.programs.size() == 1 && regular) group.base = 0;  // as folding asks
  if (!machine.mixed()) return group;
  const int64_t begin = machine.FirstDevice(section);
  const int64_t end = begin + machine.section(section).num_devices();
  if (!regular) {
    for (const GroupPattern& one : GroupsOf(graph, use)) {
      const std::vector<int64_t> members = one.Members();
      const auto first = std::lower_bound(members.begin(), members.end(), begin);
      if (first != members.end() && *first < end) return one;
    }
    return group;
  }
  int64_t device = -1;
  for (const int32_t program : use.programs) {
    const int64_t first = FirstDeviceIn(graph, graph.programs[program], begin, end);
    if (device < 0 || (first >= 0 && first < device)) device = first;
  }
  return device < 0 ? use.group : GroupAround(graph, use, device);
}

// Bytes/s that an interface carries of a collective which takes `alone` picoseconds; any where
// that is not known.
double AtAnInterface(const GroupShape& shape, const CommSpec& comm,
                     const RealisedCollective& collective, int64_t alone) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const auto algorithm = kAlgorithmNames.Find(collective.algorithm);
  if (!algorithm.has_value() || alone <= collective.delay_ps) return kAny;
  const std::optional<Traffic> traffic = TrafficOf(*algorithm, shape, comm.kind, comm.copies);
  if (!traffic.has_value()) return kAny;
  const double bytes = traffic->nic * static_cast<double>(collective.work_bytes);
  return bytes / ToSeconds(alone - collective.delay_ps);
}

}  // namespace

absl::StatusOr<CollectiveFootprint> MeanFootprint(const ExecutionGraph& graph, const CommUses& uses,
                                                  const Machine& machine, CommPricer& comms,
                                                  int section) {
  const std::vector<int64_t> counts = CountUses(graph, uses);
  const Machine& hosts = machine.section(section);
  CollectiveFootprint sum;
  double seconds = 0;
  for (size_t u = 0; u < counts.size(); ++u) {
    if (counts[u] == 0) continue;
    const GroupPattern group = GroupIn(graph, uses.uses[u], machine, section);
    ASSIGN_OR_RETURN(const SectionShapes shapes, ShapesOf(machine, group));
    if (shapes[0].shape.members == 1) continue;
    const auto here = std::find_if(shapes.begin(), shapes.end(), [section](const SectionShape& at) {
      return at.section == section;
    });
    const GroupShape& shape = here == shapes.end() ? shapes[0].shape : here->shape;
    ASSIGN_OR_RETURN(const int32_t realised, comms.Price(uses.uses[u].comm, group));
    const RealisedCollective& collective = comms.realised()[realised];
    if (collective.uses_no_sms) continue;
    const int64_t alone = AloneTime(machine, collective);
    const double weight = static_cast<double>(counts[u]) * static_cast<double>(alone);
    const CommSpec& comm = graph.comms[uses.uses[u].comm];
    CollectiveFootprint one =
        shape.nodes == 1 ? FootprintInside(hosts, comm.sms)
                         : FootprintAcross(hosts, shape.per_node, shape.nics,
                                           AtAnInterface(shape, comm, collective, alone), comm.sms);
    if (comm.spared) one.product_sm_fraction = one.sm_fraction;
    sum.sm_fraction += weight * one.sm_fraction;
    sum.memory_bytes_per_s += weight * one.memory_bytes_per_s;
    sum.product_sm_fraction += weight * one.product_sm_fraction;
    seconds += weight;
  }
  if (seconds == 0) return CollectiveFootprint{};
  return CollectiveFootprint{sum.sm_fraction / seconds, sum.memory_bytes_per_s / seconds,
                             sum.product_sm_fraction / seconds};
}

void PriceInterference(const ExecutionGraph& graph, const DeviceType& device,
                       const CollectiveFootprint& footprint, KernelPrices& prices, int kind) {
  prices.slowdown_q20.resize(kind * prices.num_kernels);
  for (size_t k = 0; k < prices.num_kernels; ++k) {
    const KernelCost& cost = prices.Cost(kind, static_cast<int32_t>(k));
    const double slowdown = KernelSlowdown(device, graph.kernels[k], cost, footprint);
    prices.slowdown_q20.push_back(SlowdownQ20(slowdown));
  }
}

double KernelSeconds(const ExecutionGraph& graph, const KernelPrices& prices) {
  double seconds = 0;
  for (const double of_kernel : SecondsOfKernels(graph, prices, 0)) seconds += of_kernel;
  return seconds;
}

double MeanCommSlowdown(const ExecutionGraph& graph, const DeviceType& device,
                        const CollectiveFootprint& footprint, const KernelPrices& prices,
                        int kind) {
  const std::vector<double> seconds = SecondsOfKernels(graph, prices, kind);
  double lost = 0, all = 0;
  for (size_t k = 0; k < seconds.size(); ++k) {
    if (seconds[k] == 0) continue;
    const KernelCost& kernel = prices.Cost(kind, static_cast<int32_t>(k));
    lost += seconds[k] * (CollectiveSlowdown(device, kernel, footprint) - 1);
    all += seconds[k];
  }
  return all == 0 ? 1 : 1 + lost / all;
}

absl::StatusOr<std::vector<double>> PriceBothWays(const ExecutionGraph& graph, const CommUses& uses,
                                                  const Machine& machine,
                                                  const RuntimeParams& runtime, CommPricer& comms,
                                                  KernelPrices& prices) {
  std::vector<double> slowdowns;
  for (int s = 0; s < machine.num_sections(); ++s) {
    const DeviceType& device = machine.section(s).device();
    CollectiveFootprint beside;
    if (!runtime.interference.has_value() || !runtime.comm_interference.has_value()) {
      ASSIGN_OR_RETURN(beside, MeanFootprint(graph, uses, machine, comms, s));
    }
    if (!runtime.interference.has_value()) PriceInterference(graph, device, beside, prices, s);
    if (runtime.comm_interference.has_value()) {
      slowdowns.push_back(1 + *runtime.comm_interference);
      continue;
    }
    const double slowdown = MeanCommSlowdown(graph, device, beside, prices, s);
    slowdowns.push_back(slowdown < kLeastCommSlowdown ? 1 : slowdown);
  }
  return slowdowns;
}

}  // namespace plancast
