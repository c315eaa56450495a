#include "executor/comm_uses.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

int64_t CoordinateOf(const Program& program, int axis) {
  for (const auto& [fixed, coordinate] : program.where) {
    if (fixed == axis) return coordinate;
  }
  return -1;
}

// Sorts dims innermost first and joins those that continue one another.
std::vector<GroupPattern::Dim> Canonical(std::vector<GroupPattern::Dim> dims) {
  std::sort(dims.begin(), dims.end(),
            [](const auto& a, const auto& b) { return a.stride < b.stride; });
  std::vector<GroupPattern::Dim> joined;
  for (const GroupPattern::Dim& dim : dims) {
    if (dim.extent == 1) continue;
    if (!joined.empty() && joined.back().stride * joined.back().extent == dim.stride) {
      joined.back().extent *= dim.extent;
    } else {
      joined.push_back(dim);
    }
  }
  return joined;
}

std::vector<int64_t> DevicesOf(const ExecutionGraph& graph, int32_t program) {
  std::vector<int64_t> devices;
  const Program& own = graph.programs[program];
  const int64_t shift = graph.ShiftOf(own), most = graph.MeshOf(own).num_devices();
  for (int64_t device = shift; device < shift + most; ++device) {
    if (graph.Runs(own, device)) devices.push_back(device);
  }
  return devices;
}

// The devices that send to each other, directly or by others, in any of its ways; those with the
// lowest first.
std::vector<std::vector<int64_t>> Components(const ExecutionGraph& graph, const CommUse& use) {
  std::vector<int64_t> devices;
  for (const int32_t program : use.programs) {
    const std::vector<int64_t> own = DevicesOf(graph, program);
    devices.insert(devices.end(), own.begin(), own.end());
  }
  std::sort(devices.begin(), devices.end());
  // By device: one with a lower number, or itself.
  std::vector<int64_t> leader(graph.mesh.num_devices());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](int64_t device) {
    while (leader[device] != device) device = leader[device] = leader[leader[device]];
    return device;
  };
  const auto join = [&](int64_t a, int64_t b) {
    a = find(a), b = find(b);
    leader[std::max(a, b)] = std::min(a, b);
  };
  for (const Reshard::Way& way : graph.reshards[graph.comms[use.comm].reshard].ways) {
    for (const Reshard::Flow& flow : way.flows) join(flow.from, flow.to);
    if (way.after.bytes == 0) continue;
    const DeviceMesh& mesh = graph.MeshOf(way.after);
    const int64_t shift = graph.stage_meshes[way.after.stage_mesh].shift;
    for (const Reshard::Flow& flow : way.flows) {
      for (const int axis : way.after.axes) {
        const int64_t place = flow.to - shift;
        join(flow.to, flow.to - mesh.Coordinate(place, axis) * mesh.stride(axis));
      }
    }
  }
  std::vector<std::vector<int64_t>> components;
  std::vector<int32_t> component_of(leader.size(), -1);
  for (const int64_t device : devices) {
    int32_t& component = component_of[find(device)];
    if (component < 0) {
      component = static_cast<int32_t>(components.size());
      components.emplace_back();
    }
    components[component].push_back(device);
  }
  return components;
}

// Groups across programs with meshes of their own: those that send to each other; where meshes
// are equal, those with equal coordinates along the axes that the communication does not run
// over; else all devices together.
std::vector<std::vector<int64_t>> GroupsAcross(const ExecutionGraph& graph, const CommUse& use) {
  const CommSpec& comm = graph.comms[use.comm];
  if (comm.kind == CollectiveKind::kReshard) return Components(graph, use);
  const DeviceMesh& mesh = graph.MeshOf(graph.programs[use.programs[0]]);
  const bool alike = std::all_of(use.programs.begin(), use.programs.end(), [&](int32_t program) {
    return graph.MeshOf(graph.programs[program]) == mesh;
  });
  std::map<std::vector<int64_t>, std::vector<int64_t>> members;  // by coordinates
  for (const int32_t program : use.programs) {
    const int64_t shift = graph.ShiftOf(graph.programs[program]);
    for (const int64_t device : DevicesOf(graph, program)) {
      std::vector<int64_t> key;
      for (int axis = 0; alike && axis < mesh.num_axes(); ++axis) {
        const bool joined = std::find(comm.axes.begin(), comm.axes.end(), axis) != comm.axes.end();
        if (!joined) key.push_back(mesh.Coordinate(device - shift, axis));
      }
      members[key].push_back(device);
    }
  }
  std::vector<std::vector<int64_t>> groups;
  for (auto& [unused, devices] : members) {
    std::sort(devices.begin(), devices.end());
    groups.push_back(std::move(devices));
  }
  return groups;
}

absl::StatusOr<GroupPattern> GroupOf(const ExecutionGraph& graph, const CommUse& use) {
  GroupPattern group;
  if (use.programs.size() > 1 && !graph.stage_meshes.empty()) {
    return GroupPattern::Of(GroupsAcross(graph, use)[0]);
  }
  const DeviceMesh& mesh = graph.MeshOf(graph.comms[use.comm]);
  std::vector<GroupPattern::Dim> dims;
  size_t places = 1;
  for (int axis : graph.comms[use.comm].axes) {
    if (CoordinateOf(graph.programs[use.programs[0]], axis) < 0) {
      dims.push_back({mesh.size(axis), mesh.stride(axis)});
      continue;
    }
    std::vector<int64_t> at;
    for (int32_t program : use.programs) {
      at.push_back(CoordinateOf(graph.programs[program], axis));
    }
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    const int64_t step = at.size() > 1 ? at[1] - at[0] : 1;
    for (size_t i = 1; i < at.size(); ++i) {
      if (at[i] - at[i - 1] != step) {
        return absl::UnimplementedError(
            absl::StrCat("a rendezvous joins coordinates ", absl::StrJoin(at, ", "),
                         " of mesh axis `", mesh.axis(axis).name, "`; they need equal distances."));
      }
    }
    places *= at.size();
    dims.push_back({static_cast<int64_t>(at.size()), step * mesh.stride(axis)});
  }
  if (places != use.programs.size()) {
    return absl::UnimplementedError(absl::StrCat("a rendezvous joins ", use.programs.size(),
                                                 " programs that do not fill a grid of ", places,
                                                 " coordinates; it needs all of them."));
  }
  group.base = FirstDevice(graph, use.programs[0]);
  for (int32_t program : use.programs) {
    group.base = std::min(group.base, FirstDevice(graph, program));
  }
  group.dims = Canonical(std::move(dims));
  return group;
}

class Finder {
 public:
  explicit Finder(const ExecutionGraph& graph) : graph_(graph) {}

  absl::StatusOr<CommUses> Find() && {
    const size_t programs = graph_.programs.size();
    result_.num_comms = static_cast<int32_t>(graph_.comms.size());
    result_.of_comm.assign(programs * graph_.comms.size(), -1);
    met_.assign(graph_.rendezvous.size(), {-1, -1});
    for (size_t p = 0; p < programs; ++p) {
      RETURN_IF_ERROR(FindInside(static_cast<int32_t>(p))) << graph_.programs[p].name;
    }
    first_met_.assign(programs * graph_.blocks.size(), -1);
    result_.of_rendezvous.reserve(graph_.rendezvous.size());
    for (size_t r = 0; r < graph_.rendezvous.size(); ++r) {
      ASSIGN_OR_RETURN(const int32_t use, FindRendezvous(r));
      result_.of_rendezvous.push_back(use);
    }
    return std::move(result_);
  }

 private:
  // A block as a program runs it.
  int32_t Place(int32_t program, int32_t block) const {
    return program * static_cast<int32_t>(graph_.blocks.size()) + block;
  }

  absl::Status FindInside(int32_t program) {
    std::vector<bool> seen(graph_.blocks.size());
    for (const Instance& instance : graph_.programs[program].instances) {
      if (instance.rendezvous >= 0) {
        auto& [first, second] = met_[instance.rendezvous];
        (first < 0 ? first : second) = Place(program, instance.block);
      }
      if (seen[instance.block]) continue;
      seen[instance.block] = true;
      const Block& block = graph_.blocks[instance.block];
      for (int32_t t = 0; t < block.size(); ++t) {
        if (block.kind[t] != TaskKind::kComm || t == block.rendezvous_task) continue;
        int32_t& use =
            result_.of_comm[static_cast<size_t>(program) * result_.num_comms + block.spec[t]];
        if (use < 0) {
          CommUse fresh;
          fresh.comm = block.spec[t];
          fresh.programs = graph_.JoinedBy(graph_.comms[fresh.comm], program);
          if (const CollectiveKind kind = graph_.comms[fresh.comm].kind; IsOnHost(kind)) {
            fresh.source = kind == CollectiveKind::kCopyToDevice ? CommUse::kHost : program;
          }
          ASSIGN_OR_RETURN(const int32_t added, Add(std::move(fresh)));
          for (const int32_t joined : result_.uses[added].programs) {
            result_.of_comm[static_cast<size_t>(joined) * result_.num_comms + block.spec[t]] =
                added;
          }
        }
        CommUse& known = result_.uses[use];
        const auto at = std::find(known.programs.begin(), known.programs.end(), program);
        known.streams[at - known.programs.begin()] |= MaskOf(block.stream[t]);
      }
    }
    return absl::OkStatus();
  }

  // Pairs of programs meet many times, and for few purposes: what two blocks have
  // met for is looked up by both.
  absl::StatusOr<int32_t> FindRendezvous(size_t r) {
    const Rendezvous& rendezvous = graph_.rendezvous[r];
    if (rendezvous.parties.size() != 2) return FindMeeting(rendezvous);
    const auto [first, second] = met_[r];
    for (int32_t p = first_met_[first]; p >= 0; p = pairs_[p].before) {
      if (pairs_[p].second == second) return pairs_[p].use;
    }
    ASSIGN_OR_RETURN(const int32_t use, FindMeeting(rendezvous));
    pairs_.push_back({second, use, first_met_[first]});
    first_met_[first] = static_cast<int32_t>(pairs_.size()) - 1;
    return use;
  }

  absl::StatusOr<int32_t> FindMeeting(const Rendezvous& rendezvous) {
    parties_.assign(rendezvous.parties.begin(), rendezvous.parties.end());
    std::sort(parties_.begin(), parties_.end(),
              [](const auto& a, const auto& b) { return a.program < b.program; });
    key_.clear();
    key_.push_back(SpecOf(parties_[0]));
    int32_t source = -1;
    if (const CollectiveKind kind = graph_.comms[key_[0]].kind;
        kind == CollectiveKind::kSendRecv || kind == CollectiveKind::kReshard) {
      if (const int sender = SenderOf(parties_); sender >= 0) {
        key_[0] = SpecOf(parties_[sender]);
        source = parties_[sender].program;
      }
    }
    key_.push_back(source);
    for (const Rendezvous::Party& party : parties_) key_.push_back(party.program);
    int32_t use = -1;
    if (const auto found = meetings_.find(key_); found != meetings_.end()) {
      use = found->second;
    } else {
      CommUse fresh;
      fresh.comm = key_[0];
      fresh.source = source;
      fresh.programs.assign(key_.begin() + 2, key_.end());
      ASSIGN_OR_RETURN(use, Add(std::move(fresh)));
      meetings_.emplace(key_, use);
    }
    for (size_t i = 0; i < parties_.size(); ++i) {
      result_.uses[use].streams[i] |= MaskOf(StreamOf(parties_[i]));
    }
    return use;
  }

  const Block& BlockOf(const Rendezvous::Party& party) const {
    return graph_.blocks[graph_.programs[party.program].instances[party.instance].block];
  }
  int32_t SpecOf(const Rendezvous::Party& party) const {
    const Block& block = BlockOf(party);
    return block.spec[block.rendezvous_task];
  }
  StreamKind StreamOf(const Rendezvous::Party& party) const {
    const Block& block = BlockOf(party);
    return block.stream[block.rendezvous_task];
  }

  // The party in a sending stream; -1: there is none, both send and receive (the
  // swap of tied gradients).
  int SenderOf(const std::vector<Rendezvous::Party>& parties) const {
    const bool first = Sends(StreamOf(parties[0])), second = Sends(StreamOf(parties[1]));
    return first == second ? -1 : first ? 0 : 1;
  }

  absl::StatusOr<int32_t> Add(CommUse use) {
    use.streams.resize(use.programs.size());
    ASSIGN_OR_RETURN(use.group, GroupOf(graph_, use));
    result_.uses.push_back(std::move(use));
    return static_cast<int32_t>(result_.uses.size()) - 1;
  }

  const ExecutionGraph& graph_;
  CommUses result_;
  absl::flat_hash_map<std::vector<int32_t>, int32_t> meetings_;
  std::vector<std::pair<int32_t, int32_t>> met_;  // per rendezvous: places of the first two
  struct Pair {
    int32_t second, use, before;  // before: the pair of the same first place before this
  };
  std::vector<Pair> pairs_;
  std::vector<int32_t> first_met_;  // per place: its newest pair as the first, or -1
  std::vector<int32_t> key_;
  std::vector<Rendezvous::Party> parties_;
};

}  // namespace

std::vector<std::vector<int32_t>> UsesByGroups(const ExecutionGraph& graph, const CommUses& uses) {
  std::vector<std::vector<int32_t>> sets;
  std::map<std::tuple<std::vector<int>, std::vector<int32_t>, int32_t>, size_t> known;
  for (size_t u = 0; u < uses.uses.size(); ++u) {
    const CommUse& use = uses.uses[u];
    // Groups of a reshard are its own.
    std::vector<int> axes = graph.comms[use.comm].axes;
    if (graph.comms[use.comm].reshard >= 0) axes = {-1, graph.comms[use.comm].reshard};
    const auto [found, fresh] = known.try_emplace({axes, use.programs, use.source}, sets.size());
    if (fresh) sets.emplace_back();
    sets[found->second].push_back(static_cast<int32_t>(u));
  }
  return sets;
}

int32_t ProgramOf(const ExecutionGraph& graph, int64_t device) {
  for (size_t p = graph.programs.size(); p-- > 0;) {
    if (graph.Runs(graph.programs[p], device)) return static_cast<int32_t>(p);
  }
  return 0;
}

int64_t FirstDevice(const ExecutionGraph& graph, int32_t program) {
  return graph.FirstDeviceOf(graph.programs[program]);
}

GroupPattern GroupAround(const ExecutionGraph& graph, const CommUse& use, int64_t device) {
  GroupPattern group = use.group;
  group.base = device;
  for (const int axis : graph.comms[use.comm].axes) {
    group.base +=
        (graph.mesh.Coordinate(use.group.base, axis) - graph.mesh.Coordinate(device, axis)) *
        graph.mesh.stride(axis);
  }
  return group;
}

std::vector<GroupPattern> GroupsOf(const ExecutionGraph& graph, const CommUse& use) {
  if (use.programs.size() > 1 && !graph.stage_meshes.empty()) {
    std::vector<GroupPattern> groups;
    for (const std::vector<int64_t>& devices : GroupsAcross(graph, use)) {
      groups.push_back(GroupPattern::Of(devices));
    }
    return groups;
  }
  const DeviceMesh& mesh = graph.MeshOf(graph.comms[use.comm]);
  const std::vector<int>& axes = graph.comms[use.comm].axes;
  const int64_t shift = graph.ShiftOf(graph.programs[use.programs[0]]);
  const int32_t lowest = ProgramOf(graph, use.group.base);
  std::vector<GroupPattern> groups;
  for (const int64_t device : DevicesOf(graph, lowest)) {
    // The lowest member of each group.
    const bool base = std::all_of(axes.begin(), axes.end(), [&](int axis) {
      return mesh.Coordinate(device - shift, axis) == mesh.Coordinate(use.group.base - shift, axis);
    });
    if (!base) continue;
    groups.push_back(use.group);
    groups.back().base = device;
  }
  return groups;
}

absl::StatusOr<CommUses> FindCommUses(const ExecutionGraph& graph) { return Finder(graph).Find(); }

}  // namespace plancast
