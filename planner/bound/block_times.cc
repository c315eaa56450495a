#include "planner/bound/block_times.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/picoseconds.h"
#include "collectives/realise.h"
#include "executor/fold/mixed_radix.h"
#include "executor/realise.h"

namespace plancast {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min() / 4;

// The devices that differ from the first one along these axes.
GroupPattern GroupAtZero(const DeviceMesh& mesh, const std::vector<int>& axes) {
  std::vector<int64_t> members = {0};
  for (const int axis : axes) {
    const size_t before = members.size();
    for (int64_t i = 1; i < mesh.size(axis); ++i) {
      for (size_t m = 0; m < before; ++m) members.push_back(members[m] + i * mesh.stride(axis));
    }
  }
  std::sort(members.begin(), members.end());
  return GroupPattern::Of(members);
}

// Longest paths through a block of tasks that take `takes`.
class Paths {
 public:
  Paths(const Block& block, const std::vector<int64_t>& takes) : block_(block), takes_(takes) {}

  // When each task ends after those that `begins(task)` names begin at 0; kNever: it does not
  // wait for any of them.
  template <typename Begins>
  std::vector<int64_t> EndsAfter(const Begins& begins) const {
    std::vector<int64_t> ends(block_.size(), kNever);
    std::array<int64_t, kNumStreams> free;
    free.fill(kNever);
    for (int32_t t = 0; t < block_.size(); ++t) {
      int64_t& stream = free[static_cast<int>(block_.stream[t])];
      int64_t start = begins(t) ? 0 : kNever;
      start = std::max(start, stream);
      for (int32_t d = block_.dep_begin[t]; d < block_.dep_begin[t + 1]; ++d) {
        if (block_.deps[d] >= 0) start = std::max(start, ends[block_.deps[d]]);
      }
      if (start == kNever) continue;
      ends[t] = stream = start + takes_[t];
    }
    return ends;
  }

  bool WaitsFor(int32_t task, int32_t port) const {
    const auto begin = block_.deps.begin() + block_.dep_begin[task];
    const auto end = block_.deps.begin() + block_.dep_begin[task + 1];
    return std::find(begin, end, ~port) != end;
  }

 private:
  const Block& block_;
  const std::vector<int64_t>& takes_;
};

}  // namespace

BlockTimer::BlockTimer(const Machine& machine, const KernelCostModel& costs,
                       const RuntimeParams& runtime)
    : machine_(machine),
      costs_(costs),
      runtime_(runtime),
      known_(machine.uniform() && !machine.mixed()) {
  if (!known_ || machine.spec().hosts_per_pod == 0) return;
  Machine::Spec spec = machine.spec();
  spec.hosts_per_pod = 0;
  absl::StatusOr<Machine> flat = Machine::Create(std::move(spec));
  if (flat.ok()) flat_ = *std::move(flat);
}

void BlockTimer::Begin(const DeviceMesh& mesh, const Skew& skew) {
  skewed_ = !skew.empty();
  const auto [it, inserted] =
      numbers_.try_emplace(mesh.DebugString(), static_cast<int>(meshes_.size()));
  number_ = it->second;
  if (!inserted) return;
  Mesh& fresh = *meshes_.emplace_back(std::make_unique<Mesh>());
  fresh.graph.mesh = mesh;
  const Machine* const flat = flat_ ? &*flat_ : nullptr;
  for (const Machine* machine : {&machine_, flat}) {
    if (machine == nullptr || !MixedRadix::Split(mesh, *machine, /*host_memory=*/true)) continue;
    fresh.machine = machine;
    fresh.pricer = std::make_unique<CommPricer>(fresh.graph, *machine, runtime_);
    return;
  }
}

int64_t BlockTimer::CommTime(const CommSpec& comm) {
  Mesh& mesh = *meshes_[number_];
  if (mesh.machine == nullptr || skewed_ || comm.kind == CollectiveKind::kReshard ||
      IsOnHost(comm.kind) || comm.stage_mesh >= 0) {
    return 0;
  }
  for (const int axis : comm.axes) {
    if (mesh.graph.mesh.root(axis) == "pp") return 0;  // it meets other programs
  }
  const auto [it, inserted] = mesh.comms.try_emplace(comm, 0);
  if (!inserted) return it->second;
  mesh.graph.comms.push_back(comm);
  const absl::StatusOr<int32_t> priced = mesh.pricer->Price(
      static_cast<int32_t>(mesh.graph.comms.size()) - 1, GroupAtZero(mesh.graph.mesh, comm.axes));
  // What cannot be priced is refused when it is simulated.
  if (priced.ok()) it->second = AloneTime(*mesh.machine, mesh.pricer->realised()[*priced]);
  return it->second;
}

std::vector<int64_t> BlockTimer::KernelsOf(const BlockTemplate& block) {
  std::vector<int64_t> takes;
  for (const KernelSpec& kernel : block.kernels) {
    const auto [it, inserted] = kernels_.try_emplace(kernel, 0);
    if (inserted) {
      const std::optional<KernelCost> cost = costs_.Estimate(kernel, machine_.device());
      if (cost) it->second = CeilToPicoseconds(cost->seconds_alone);
    }
    takes.push_back(it->second);
  }
  return takes;
}

BlockTimes BlockTimer::Find(const BlockTemplate& made, const std::vector<int64_t>& kernels) {
  const Block& block = made.block;
  std::vector<int64_t> takes(block.size());
  BlockTimes times;
  int32_t first = -1, last = -1;
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.kind[t] == TaskKind::kKernel) {
      const bool unlike = skewed_ && made.kernels[block.spec[t]].routed;
      takes[t] = unlike ? 0 : kernels[block.spec[t]];
      times.launches += made.kernels[block.spec[t]].host_launches();
    } else {
      ++times.launches;
      takes[t] = CommTime(made.comms[block.spec[t]]);
      times.comms[static_cast<int>(block.stream[t])] += takes[t];
    }
    if (block.stream[t] != StreamKind::kCompute) continue;
    if (first < 0) first = t;
    last = t;
  }
  if (first < 0) return times;
  times.computes = true;
  const Paths paths(block, takes);
  const std::vector<int64_t> ends = paths.EndsAfter([&](int32_t t) { return t == first; });
  times.once = times.again = ends[last];
  int64_t first_out = std::numeric_limits<int64_t>::max();
  for (size_t port = 0; port < block.out_ports.size(); ++port) {
    const int32_t task = block.out_ports[port];
    if (task < 0) continue;
    first_out = std::min(first_out, std::max<int64_t>(ends[task], 0));
    if (paths.WaitsFor(first, static_cast<int32_t>(port))) {
      times.again = std::max(times.again, ends[task]);
    }
  }
  times.before_end =
      times.once - (first_out == std::numeric_limits<int64_t>::max() ? 0 : first_out);
  for (int32_t port = 0; port < block.num_in_ports; ++port) {
    const std::vector<int64_t> after =
        paths.EndsAfter([&](int32_t t) { return paths.WaitsFor(t, port); });
    int64_t before = 0;
    bool reached = false;
    for (int32_t t = first; t <= last && !reached; ++t) {
      if (block.stream[t] != StreamKind::kCompute) continue;
      reached = after[t] != kNever;
      if (!reached) before = ends[t];
    }
    if (reached) times.before_ports = std::max(times.before_ports, before);
  }
  return times;
}

const BlockTimes& BlockTimer::Of(const BlockTemplate& block) {
  const auto [it, inserted] = blocks_.try_emplace(&block);
  if (inserted) it->second.kernels = KernelsOf(block);
  const auto [times, fresh] = it->second.of_mesh.try_emplace(2 * number_ + (skewed_ ? 1 : 0));
  if (fresh) times->second = Find(block, it->second.kernels);
  return times->second;
}

}  // namespace plancast
