#include "executor/contention/contention.h"

#include <algorithm>
#include <tuple>

#include "base/int128.h"

namespace plancast {
namespace {

// The most that one stream of one entity can ask of a resource.
struct Demand {
  int32_t resource = 0;
  int32_t cursor = 0;  // entity * kNumStreams + stream
  int32_t group = 0;
  int128 bytes_q20 = 0;

  friend bool operator<(const Demand& a, const Demand& b) {
    return std::tie(a.resource, a.cursor, a.bytes_q20) <
           std::tie(b.resource, b.cursor, b.bytes_q20);
  }
};

// Who asks for what. A group of several entities can be told by any of them: by
// one that asks for the resource anyway in that stream, if there is one.
std::vector<Demand> FindDemands(const CommUses& uses, const SimGraph& sim,
                                const std::vector<RealisedCollective>& realised) {
  std::vector<Demand> demands;
  std::vector<std::vector<int32_t>> cursors(sim.resources.size());  // of single entities
  const auto ask = [&](int32_t g, bool single) {
    const SimGraph::Group& group = sim.groups[g];
    const RealisedCollective& cost = realised[group.realised];
    if (cost.work_bytes == 0 || (group.member_end - group.member_begin == 1) != single) return;
    const CommUse& use = uses.uses[group.use];
    const auto streams_of = [&](int32_t entity) {
      const auto at =
          std::find(use.programs.begin(), use.programs.end(), sim.entities[entity].program);
      return use.streams[at - use.programs.begin()];
    };
    for (const Fluid::Use& load : sim.LoadsOf(group)) {
      std::vector<int32_t>& known = cursors[load.resource];
      int32_t teller = sim.members[group.member_begin];
      for (const int32_t entity : sim.MembersOf(group)) {
        const StreamMask streams = streams_of(entity);
        const bool one = (streams & (streams - 1)) == 0;
        const int32_t cursor = entity * kNumStreams + __builtin_ctz(streams);
        if (one && std::find(known.begin(), known.end(), cursor) != known.end()) teller = entity;
      }
      for (uint32_t rest = streams_of(teller); rest != 0; rest &= rest - 1) {
        const int32_t cursor = teller * kNumStreams + __builtin_ctz(rest);
        if (single) known.push_back(cursor);
        demands.push_back(
            {load.resource, cursor, g, int128{load.coefficient_q20} * cost.rate_cap_bytes_per_s});
      }
    }
  };
  for (const bool single : {true, false}) {
    for (size_t g = 0; g < sim.groups.size(); ++g) ask(static_cast<int32_t>(g), single);
  }
  std::sort(demands.begin(), demands.end());
  return demands;
}

}  // namespace

Contention FindContention(const CommUses& uses, const SimGraph& sim,
                          const std::vector<RealisedCollective>& realised) {
  const std::vector<Demand> demands = FindDemands(uses, sim, realised);
  Contention contention;
  contention.of_group.resize(sim.groups.size());
  contention.cursor_begin.resize(sim.resources.size() + 1);
  for (size_t begin = 0, end = 0; begin < demands.size(); begin = end) {
    int128 sum = 0;
    int cursors = 0;
    for (; end < demands.size() && demands[end].resource == demands[begin].resource; ++end) {
      const bool last_of_lane = end + 1 == demands.size() ||
                                demands[end + 1].resource != demands[end].resource ||
                                demands[end + 1].cursor != demands[end].cursor;
      if (!last_of_lane) continue;
      sum += demands[end].bytes_q20;
      ++cursors;
    }
    const int128 capacity = int128{sim.resources[demands[begin].resource].capacity_bytes_per_s}
                            << 20;
    if (cursors == 1 || sum <= capacity) continue;
    for (size_t i = begin; i < end; ++i) {
      contention.of_group[demands[i].group] = true;
      if (i > begin && demands[i].cursor == demands[i - 1].cursor) continue;
      contention.cursors.push_back(demands[i].cursor);
      ++contention.cursor_begin[demands[i].resource + 1];
    }
  }
  // Demands were met in order of resources, so counts add up to places.
  for (size_t r = 0; r < sim.resources.size(); ++r) {
    contention.cursor_begin[r + 1] += contention.cursor_begin[r];
  }
  return contention;
}

}  // namespace plancast
