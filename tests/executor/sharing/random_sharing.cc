#include "tests/executor/sharing/random_sharing.h"

#include <algorithm>
#include <set>

#include "base/int128.h"

namespace plancast {
namespace {

constexpr int64_t kOne = 1 << 20;

}  // namespace

RandomSharing DrawSharing(std::mt19937& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  RandomSharing sharing;
  sharing.unit = draw(1, 3) == 1 ? 100 : draw(1, 1'000'000'007);
  struct Place {
    int pod, host;
  };
  std::vector<Place> places;  // of each resource; -1: above
  const auto add = [&](Level level, int pod, int host) {
    sharing.resources.push_back({draw(1, 10) * sharing.unit, level});
    places.push_back({pod, host});
  };
  const int pods = static_cast<int>(draw(1, 3)), hosts = static_cast<int>(draw(1, 3));
  for (int pod = 0; pod < pods; ++pod) {
    for (int host = 0; host < hosts; ++host) {
      for (int64_t n = draw(0, 2); n > 0; --n) add(Level::kDevice, pod, host);
      for (int64_t n = draw(1, 3); n > 0; --n) add(Level::kHost, pod, host);
    }
    for (int64_t n = draw(0, 2); n > 0; --n) add(Level::kPod, pod, -1);
  }
  for (int64_t n = draw(0, 2); n > 0; --n) add(Level::kCluster, -1, -1);
  for (int64_t k = draw(2, 16); k > 0; --k) {
    RandomSharing::Kind kind{
        draw(1, 20) * sharing.unit, draw(1, 3), static_cast<int32_t>(draw(0, 2)), {}};
    if (draw(1, 2) == 1) kind.weight = 1;
    // Where it runs: one host, one pod or everywhere.
    const int64_t reach = draw(0, 3);
    const int pod = static_cast<int>(draw(0, pods - 1)),
              host = static_cast<int>(draw(0, hosts - 1));
    for (size_t r = 0; r < sharing.resources.size(); ++r) {
      const Place& place = places[r];
      const bool inside = reach == 3 || (place.pod == pod && (reach == 2 || place.host == host));
      if (!inside || draw(0, reach) > 0) continue;
      const int64_t coefficient = draw(1, 2) == 1 ? kOne * draw(1, 2) : draw(kOne / 4, 4 * kOne);
      kind.uses.push_back({static_cast<int32_t>(r), coefficient});
    }
    sharing.kinds.push_back(kind);
  }
  return sharing;
}

std::vector<int64_t> PlainRates(const RandomSharing& sharing, LinkSharing policy,
                                const std::vector<int>& active) {
  std::vector<int128> left, demand(sharing.resources.size());
  for (const RandomSharing::Resource& r : sharing.resources)
    left.push_back(int128{r.capacity} << 36);
  std::set<int32_t> classes;
  for (int k : active) {
    const RandomSharing::Kind& kind = sharing.kinds[k];
    classes.insert(policy == LinkSharing::kPriority ? kind.priority : 0);
    for (const auto& use : kind.uses) {
      demand[use.resource] += int128{use.coefficient_q20} * kind.CapQ16();
    }
  }
  std::vector<bool> overloads;
  for (size_t r = 0; r < left.size(); ++r) overloads.push_back(demand[r] > left[r]);
  std::vector<int64_t> rates(active.size(), -1);
  for (int32_t now : classes) {
    const auto rises = [&](size_t a) {
      const int32_t priority = sharing.kinds[active[a]].priority;
      return rates[a] < 0 && (policy == LinkSharing::kMaxMin || priority == now);
    };
    std::vector<int128> least(left.size());
    for (size_t r = 0; r < left.size(); ++r) {
      least[r] = left[r] == int128{sharing.resources[r].capacity} << 36 ? 1 : 0;
    }
    while (true) {
      std::vector<int128> weight(left.size());
      for (size_t a = 0; a < active.size(); ++a) {
        if (!rises(a)) continue;
        const RandomSharing::Kind& kind = sharing.kinds[active[a]];
        for (const auto& use : kind.uses) {
          weight[use.resource] += int128{use.coefficient_q20} * kind.weight;
        }
      }
      const auto limit = [&](size_t a) {
        const RandomSharing::Kind& kind = sharing.kinds[active[a]];
        int128 lowest = kind.CapQ16() / kind.weight;
        for (const auto& use : kind.uses) {
          const int32_t r = use.resource;
          if (overloads[r]) lowest = std::min(lowest, std::max(left[r] / weight[r], least[r]));
        }
        return lowest;
      };
      int128 level = -1;
      for (size_t a = 0; a < active.size(); ++a) {
        if (rises(a) && (level < 0 || limit(a) < level)) level = limit(a);
      }
      if (level < 0) break;
      std::vector<size_t> stopped;
      for (size_t a = 0; a < active.size(); ++a) {
        if (rises(a) && limit(a) == level) stopped.push_back(a);
      }
      for (size_t a : stopped) {
        const RandomSharing::Kind& kind = sharing.kinds[active[a]];
        rates[a] = static_cast<int64_t>(level * kind.weight);
        for (const auto& use : kind.uses)
          left[use.resource] -= int128{use.coefficient_q20} * rates[a];
      }
    }
  }
  return rates;
}

}  // namespace plancast
