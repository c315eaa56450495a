#include "executor/simulate/clock.h"

#include <algorithm>
#include <utility>

namespace plancast {
namespace {

// A jitter's factor is as good as never larger; the time after it is checked event by event.
constexpr double kMostJitter = 64;

double Share(int64_t q20) { return static_cast<double>(q20) / static_cast<double>(1 << 20); }

// Picoseconds in floating point, which hold any sum.
class Bounds {
 public:
  Bounds(const SimInput& in, const std::vector<int64_t>& alone_ps)
      : in_(in), comm_ps_(in.uses.uses.size()) {
    for (size_t g = 0; g < alone_ps.size(); ++g) {
      double& longest = comm_ps_[in.sim.groups[g].use];
      longest = std::max(
          longest, static_cast<double>(alone_ps[g]) * Share(in.CommSlowdownOf(in.sim.groups[g])));
    }
  }

  // Of the longest instance of an entity, task after task.
  double Longest(int32_t entity) const {
    const int32_t program = in_.ProgramOf(entity);
    std::vector<double> layer_ps(in_.graph.blocks.size(), -1);
    double longest = 0;
    for (const Instance& instance : in_.graph.programs[program].instances) {
      double& layer = layer_ps[instance.block];
      if (layer < 0) layer = OfLayer(entity, instance);
      longest = std::max(longest, layer * instance.layer_count);
    }
    return in_.jitter == nullptr ? longest : longest * kMostJitter;
  }

  // Of all that the host of a program does.
  double OfHost(int32_t program) const {
    const HostParams& host = in_.hosts[program];
    const ProgramIndex& index = in_.index.program(program);
    const auto instances = static_cast<int32_t>(in_.graph.programs[program].instances.size());
    if (instances == 0) return static_cast<double>(host.start_ps);
    const int32_t last = instances - 1;
    const Instance& instance = in_.index.InstanceOf(program, last);
    const auto launches = static_cast<double>(index.launches_before[last]) +
                          static_cast<double>(in_.index.BlockAt(program, last).launches.back()) *
                              instance.layer_count;
    const double graphs = index.graphs.empty() ? 0 : index.graphs.back();
    return static_cast<double>(host.start_ps) + launches * static_cast<double>(host.launch_ps) +
           graphs * static_cast<double>(host.graph_launch_ps) + static_cast<double>(host.sync_ps);
  }

 private:
  double OfLayer(int32_t entity, const Instance& instance) const {
    const int32_t program = in_.ProgramOf(entity), row = in_.sim.entities[entity].price_row;
    const Block& block = in_.graph.blocks[instance.block];
    double sum = 0;
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] == TaskKind::kKernel) {
        sum += static_cast<double>(in_.prices.Duration(row, block.spec[t])) *
               Share(in_.SlowdownOf(entity, block.spec[t]));
      } else {
        sum += comm_ps_[t == block.rendezvous_task ? in_.uses.of_rendezvous[instance.rendezvous]
                                                   : in_.uses.OfComm(program, block.spec[t])];
      }
    }
    return sum;
  }

  const SimInput& in_;
  std::vector<double> comm_ps_;  // per use
};

}  // namespace

absl::Status ClockError() {
  return absl::InvalidArgumentError(
      "one iteration would take more than 26 days, which is more than the simulator's clock holds. "
      "Take a smaller batch, smaller micro-batches or more devices.");
}

absl::Status CheckClock(const SimInput& in, const std::vector<int64_t>& alone_ps) {
  const Bounds bounds(in, alone_ps);
  std::vector<std::pair<int32_t, int32_t>> seen;  // program, price row; entities ascend by program
  for (int32_t e = 0; e < static_cast<int32_t>(in.sim.entities.size()); ++e) {
    const SimGraph::Entity& entity = in.sim.entities[e];
    const std::pair<int32_t, int32_t> kind(entity.program, entity.price_row);
    if (!seen.empty() && seen.back().first != entity.program) seen.clear();
    if (std::find(seen.begin(), seen.end(), kind) != seen.end()) continue;
    seen.push_back(kind);
    const double most = std::max(bounds.Longest(e), bounds.OfHost(entity.program));
    if (!(most <= static_cast<double>(kLongestPs))) return ClockError();
  }
  return absl::OkStatus();
}

}  // namespace plancast
