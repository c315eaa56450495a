#include "executor/realise.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "collectives/reshard.h"
#include "executor/chunks/realise_chunks.h"

namespace plancast {
namespace {

// Whether two outcomes take the same time in any company.
bool Same(const RealisedCollective& a, const RealisedCollective& b) {
  const auto same_load = [](const LinkLoad& x, const LinkLoad& y) {
    return x.link_class == y.link_class && x.coefficient_q20 == y.coefficient_q20 &&
           x.to_q20 == y.to_q20;
  };
  return a.delay_ps == b.delay_ps && a.work_bytes == b.work_bytes &&
         a.rate_cap_bytes_per_s == b.rate_cap_bytes_per_s && a.sm_fraction == b.sm_fraction &&
         a.uses_no_sms == b.uses_no_sms && a.factor == b.factor && a.algorithm == b.algorithm &&
         a.protocol == b.protocol &&
         std::equal(a.loads.begin(), a.loads.end(), b.loads.begin(), b.loads.end(), same_load);
}

// Whether members meet for it in the middle of their computing, again and again, and
// wait for the last of them each time. Gradients are reduced once an iteration, in
// messages that take far longer than members differ.
bool IsBetweenKernels(const DeviceMesh& mesh, const CommSpec& comm) {
  if (comm.kind == CollectiveKind::kAllToAll) return true;
  if (comm.kind == CollectiveKind::kSendRecv || comm.kind == CollectiveKind::kReshard ||
      IsOnHost(comm.kind)) {
    return false;
  }
  return std::none_of(comm.axes.begin(), comm.axes.end(),
                      [&](int axis) { return mesh.root(axis) == "dp"; });
}

// It takes `time` times as long in any company: it waits and moves as much less.
void Shorten(double time, RealisedCollective& realised) {
  const auto scaled = [time](int64_t value) {
    return time == 1 ? value : static_cast<int64_t>(std::ceil(static_cast<double>(value) * time));
  };
  realised.delay_ps = scaled(realised.delay_ps);
  realised.work_bytes = scaled(realised.work_bytes);
}

// What a kernel takes longer because all hosts from which its parameters were gathered wait for the
// slowest of them. With a unit gathered ahead, hosts drift apart until one waits; of random walks
// behind such a barrier the front moves faster by the logarithm of their number.
double SkewOfGather(const KernelSpec& kernel, const Machine& machine, double gather_skew) {
  const auto devices = static_cast<double>(kernel.gathered_over);
  const auto a_host = static_cast<double>(machine.section(0).spec().gpus_per_host);
  return devices > a_host ? 1 + gather_skew * std::log(devices / a_host) : 1;
}

// Those that get from one another what `after` brings to a device.
GroupPattern GroupAmongReceivers(const ExecutionGraph& graph, const CommSpec& after,
                                 int64_t device) {
  const StageMesh& stage = graph.stage_meshes[after.stage_mesh];
  GroupPattern group;
  group.base = device;
  for (auto axis = after.axes.rbegin(); axis != after.axes.rend(); ++axis) {
    const int64_t stride = stage.mesh.stride(*axis);
    group.base -= stage.mesh.Coordinate(device - stage.shift, *axis) * stride;
    group.dims.push_back({stage.mesh.size(*axis), stride});
  }
  return group;
}

}  // namespace

absl::StatusOr<RealisedCollective> CheapestWay(const ExecutionGraph& graph, const Machine& machine,
                                               const GroupPattern& group, const CommSpec& comm,
                                               const CollectivePolicy& policy,
                                               const std::vector<int64_t>* placed) {
  const std::vector<int64_t> members = group.Members();
  const auto at = [placed](int64_t device) { return placed ? (*placed)[device] : device; };
  RealisedCollective best;
  bool first = true;
  for (const Reshard::Way& way : graph.reshards[comm.reshard].ways) {
    std::vector<DeviceFlow> flows;
    int64_t receiver = -1;
    for (const Reshard::Flow& flow : way.flows) {
      if (!std::binary_search(members.begin(), members.end(), at(flow.to))) continue;
      if (receiver < 0) receiver = flow.to;
      flows.push_back({at(flow.from), at(flow.to), flow.bytes});
    }
    AmongReceivers after;
    if (way.after.bytes > 0 && !flows.empty()) {
      after.kind = way.after.kind;
      after.bytes = way.after.bytes;
      after.group = GroupAmongReceivers(graph, way.after, receiver);
      if (placed != nullptr) {
        std::vector<int64_t> devices = after.group.Members();
        for (int64_t& device : devices) device = at(device);
        std::sort(devices.begin(), devices.end());
        after.group = GroupPattern::Of(devices);
      }
    }
    ASSIGN_OR_RETURN(RealisedCollective realised, RealiseReshard(machine, flows, after, policy));
    if (!first && AloneTime(machine, realised) >= AloneTime(machine, best)) continue;
    best = std::move(realised);
    first = false;
  }
  return best;
}

int32_t KernelPrices::RowFor(const Row& wanted) {
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row] == wanted) return static_cast<int32_t>(row);
  }
  rows.push_back(wanted);
  const size_t first = wanted.kind * num_kernels;
  for (size_t k = first; k < first + num_kernels; ++k) {
    const double alone = seconds_at.empty() ? costs[k].seconds_alone : seconds_at[wanted.place][k];
    duration_ps.push_back(CeilToPicoseconds(alone / wanted.compute_scale));
  }
  return static_cast<int32_t>(rows.size()) - 1;
}

void KernelPrices::Scale(absl::Span<const double> kernel_time) {
  if (kernel_time.empty()) return;
  PLANCAST_CHECK(kernel_time.size() == num_kernels);
  for (size_t k = 0; k < costs.size(); ++k) costs[k].seconds_alone *= kernel_time[k % num_kernels];
  for (std::vector<double>& seconds : seconds_at) {
    for (size_t k = 0; k < costs.size(); ++k) seconds[k] *= kernel_time[k % num_kernels];
  }
  const std::vector<Row> known = std::exchange(rows, {});
  duration_ps.clear();
  for (const Row& row : known) RowFor(row);
}

absl::StatusOr<KernelPrices> PriceKernels(const ExecutionGraph& graph, const Machine& machine,
                                          const KernelCostModel& costs, double gather_skew) {
  KernelPrices prices;
  prices.num_kernels = graph.kernels.size();
  prices.costs.reserve(graph.kernels.size() * machine.num_sections());
  const auto price = [&](const KernelSpec& kernel, int kind) -> absl::StatusOr<KernelCost> {
    const DeviceType& device = machine.section(kind).device();
    std::optional<KernelCost> cost = costs.Estimate(kernel, device);
    if (cost.has_value()) {
      cost->seconds_alone *= SkewOfGather(kernel, machine, gather_skew);
      return *std::move(cost);
    }
    return absl::NotFoundError(absl::StrCat("no cost model prices `", kernel.DebugString(),
                                            "` on `", device.name,
                                            "`. Add a roofline to the end of the chain."));
  };
  for (int kind = 0; kind < machine.num_sections(); ++kind) {
    int first = 0;
    while (machine.section(first).device().name != machine.section(kind).device().name) ++first;
    prices.first_alike.push_back(first);
    for (size_t k = 0; k < graph.kernels.size(); ++k) {
      if (first < kind) {
        prices.costs.push_back(KernelCost(prices.Cost(first, static_cast<int32_t>(k))));
        continue;
      }
      ASSIGN_OR_RETURN(prices.costs.emplace_back(), price(graph.kernels[k], kind));
    }
  }
  for (size_t place = 0; place < graph.skew.loads.size(); ++place) {
    const double load = graph.skew.loads[place];
    const auto first = std::find(graph.skew.loads.begin(), graph.skew.loads.end(), load);
    if (const size_t known = first - graph.skew.loads.begin(); known < place) {
      prices.seconds_at.push_back(std::vector<double>(prices.seconds_at[known]));
      continue;
    }
    std::vector<double>& seconds = prices.seconds_at.emplace_back();
    for (size_t at = 0; at < prices.costs.size(); ++at) {
      seconds.push_back(prices.costs[at].seconds_alone);
      const KernelSpec& kernel = graph.kernels[at % prices.num_kernels];
      if (!kernel.routed) continue;
      ASSIGN_OR_RETURN(const KernelCost cost,
                       price(UnderLoad(kernel, load), static_cast<int>(at / prices.num_kernels)));
      seconds.back() = cost.seconds_alone;
    }
  }
  prices.RowFor({});
  return prices;
}

CommPricer::CommPricer(const ExecutionGraph& graph, const Machine& machine,
                       const RuntimeParams& runtime, const std::vector<int64_t>* placed)
    : CommPricer(
          graph,
          [&machine, &graph, placed, slowdown = runtime.comm_scale, nominal = runtime.nominal_links,
           chunks = runtime.chunk_level, shares = runtime.shares_links](
              const GroupPattern& group,
              const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
            CollectivePolicy policy;
            policy.algorithm = comm.policy;
            if (IsBetweenKernels(graph.MeshOf(comm), comm)) {
              policy.bandwidth_scale = 1.0 / slowdown;
            }
            policy.nominal = nominal;
            policy.copies = comm.copies;
            policy.fused = comm.fused;
            ASSIGN_OR_RETURN(RealisedCollective realised,
                             comm.kind == CollectiveKind::kReshard
                                 ? CheapestWay(graph, machine, group, comm, policy, placed)
                                 : (chunks ? RealiseByChunks : Realise)(machine, group, comm.kind,
                                                                        comm.bytes, policy));
            return shares ? realised : WithLinksOfItsOwn(machine, std::move(realised));
          }) {}

absl::StatusOr<int32_t> CommPricer::Price(int32_t comm, const GroupPattern& group) {
  key_.assign({comm, group.base});
  for (const GroupPattern::Dim& dim : group.dims) {
    key_.push_back(dim.extent);
    key_.push_back(dim.stride);
  }
  for (int64_t device : group.devices) key_.push_back(-1 - device);
  if (const auto found = known_.find(key_); found != known_.end()) return found->second;
  ASSIGN_OR_RETURN(RealisedCollective realised, realise_(group, graph_.comms[comm]));
  if (!comm_time_.empty()) Shorten(comm_time_[comm], realised);
  of_comm_.resize(graph_.comms.size());
  realised_.reserve(graph_.comms.size());
  for (int32_t known : of_comm_[comm]) {
    if (Same(realised_[known], realised)) return known_.emplace(key_, known).first->second;
  }
  const auto index = static_cast<int32_t>(realised_.size());
  realised_.push_back(std::move(realised));
  of_comm_[comm].push_back(index);
  known_.emplace(key_, index);
  return index;
}

}  // namespace plancast
