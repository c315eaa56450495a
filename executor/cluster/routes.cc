#include "executor/cluster/routes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/picoseconds.h"

namespace plancast {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 45;

// Of a splitmix64 generator.
uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double BytesOf(const ClusterJob& job) {
  double bytes = 0;
  for (const ClusterJob::Phase& phase : job.phases) bytes += phase.bytes;
  return bytes;
}

}  // namespace

PlacedLoop Routes::Place(const ClusterJob& job, absl::Span<const int64_t> gpus,
                         int64_t weight) const {
  PlacedLoop placed;
  placed.loop.weight = weight;
  bool sends = false;
  for (const ClusterJob::Phase& phase : job.phases) {
    sends = sends || phase.transfer_ps > 0 || phase.bytes > 0;
  }
  if (!sends) return placed;
  placed.flows = fabric_.RingOf(gpus, &placed.per_hop);
  // Loads are compared before there are paths: as if interfaces were the limit.
  double communication = 0, all = 0;
  for (const ClusterJob::Phase& phase : job.phases) {
    double seconds = ToSeconds(phase.transfer_ps);
    if (phase.transfer_ps == 0 && placed.per_hop > 0) {
      seconds = phase.bytes / static_cast<double>(placed.per_hop) /
                static_cast<double>(fabric_.spec().nic_bytes_per_s);
    }
    communication += seconds;
    all += std::max(seconds, ToSeconds(phase.compute_ps));
  }
  if (placed.per_hop == 0 || all <= 0) return placed;
  const double bytes = BytesOf(job) > 0
                           ? BytesOf(job) / static_cast<double>(placed.per_hop)
                           : communication * static_cast<double>(fabric_.spec().nic_bytes_per_s);
  placed.bytes_per_s = bytes / all;
  return placed;
}

void Routes::Choose(const ClusterJob& job, int32_t number, bool by_load, PlacedLoop* placed) {
  std::vector<int32_t> links;
  size_t flow_number = 0;
  std::vector<std::pair<int32_t, double>> added;
  const Fabric::Choose choose = [&](const FabricFlow&, int tier, int32_t up, int32_t down,
                                    int32_t width) {
    if (width == 1) return 0;
    if (!by_load) {
      const uint64_t key =
          Mixed(Mixed(Mixed(seed_) ^ static_cast<uint64_t>(number)) ^
                (static_cast<uint64_t>(flow_number) << 8) ^ static_cast<uint64_t>(tier));
      return static_cast<int32_t>(key % static_cast<uint64_t>(width));
    }
    int32_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int32_t c = 0; c < width; ++c) {
      const int32_t at = c * Fabric::kStride;
      const double load = std::max(loads_[up + at], loads_[down + at]);
      if (load < least) {
        least = load;
        best = c;
      }
    }
    return best;
  };
  for (const FabricFlow& flow : placed->flows) {
    const size_t before = links.size();
    fabric_.Route(flow, choose, &links);
    // The job's own flows keep out of each other's way, too.
    for (size_t l = before; l < links.size(); ++l) loads_[links[l]] += placed->bytes_per_s;
    ++flow_number;
  }
  for (int32_t link : links) loads_[link] -= placed->bytes_per_s;
  SetUses(std::move(links), placed);
  SetWork(job, placed);
}

void Routes::SetUses(std::vector<int32_t> links, PlacedLoop* placed) const {
  std::sort(links.begin(), links.end());
  placed->loop.uses.clear();
  for (int32_t link : links) {
    if (!placed->loop.uses.empty() && placed->loop.uses.back().resource == link) {
      placed->loop.uses.back().coefficient_q20 += int64_t{1} << 20;
    } else {
      placed->loop.uses.push_back({link, int64_t{1} << 20});
    }
  }
}

void Routes::SetWork(const ClusterJob& job, PlacedLoop* placed) const {
  Loop& loop = placed->loop;
  // What a flow would take if the job ran by itself at the pace it says.
  int64_t cap = kUnlimited;
  const double hops = static_cast<double>(std::max<int64_t>(placed->per_hop, 1));
  double own = 0;
  for (const ClusterJob::Phase& phase : job.phases) {
    if (phase.bytes > 0 && phase.transfer_ps > 0) {
      own = std::max(own, phase.bytes / hops / ToSeconds(phase.transfer_ps));
    }
  }
  if (own > 0) cap = std::clamp<int64_t>(std::llround(std::ceil(own)), 1, kUnlimited);
  if (placed->per_hop == 0 && own == 0) {
    // Inside a host or domain all of its GPUs take part.
    const double inside =
        static_cast<double>(fabric_.spec().inside_bytes_per_s) * static_cast<double>(job.gpus);
    if (inside >= 1) cap = std::clamp<int64_t>(std::llround(inside), 1, kUnlimited);
  }
  loop.alone_level = AloneLevel(loop.uses, fabric_.capacities(), loop.weight, cap);
  if (!loop.phases.empty()) return;
  for (const ClusterJob::Phase& phase : job.phases) {
    LoopPhase& own_phase = loop.phases.emplace_back();
    own_phase.compute_ps = phase.compute_ps;
    if (phase.transfer_ps > 0) {
      own_phase.work = int128{phase.transfer_ps} * loop.AloneQ16();
    } else if (phase.bytes > 0) {
      own_phase.work = ActivityKinds::Work(std::max<int64_t>(std::llround(phase.bytes / hops), 1));
    }
  }
  placed->flow_bytes = 0;
  for (const LoopPhase& phase : loop.phases) {
    placed->flow_bytes += static_cast<double>(phase.work) / 65536.0 * 1e-12;
  }
}

void Routes::Count(const PlacedLoop& placed, int by) {
  for (const Fluid::Use& use : placed.loop.uses) {
    loads_[use.resource] +=
        by * placed.bytes_per_s * static_cast<double>(use.coefficient_q20 >> 20);
  }
}

}  // namespace plancast
