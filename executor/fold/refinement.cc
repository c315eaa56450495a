#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "executor/fold/blocks.h"
#include "executor/fold/fold.h"
#include "executor/fold/orbits.h"
#include "executor/fold/quotient.h"

namespace plancast {
namespace {

// Draws orbits of devices, groups and links.
class Refinement {
 public:
  Refinement(const FoldInput& input, bool discrete)
      : input_(input),
        graph_(input.graph),
        machine_(input.machine),
        orbits_(input.graph, input.machine, discrete),
        host_memory_(UsesHostMemory(input.graph)),
        periods_(input.machine, host_memory_) {}

  absl::StatusOr<FoldGraph> Draw() && {
    out_.num_uses = static_cast<int32_t>(input_.uses.uses.size());
    out_.one_way.resize(machine_.link_classes().size());
    FindDevices();
    FindLinks();
    for (std::vector<int32_t>& uses : UsesByGroups(graph_, input_.uses)) {
      out_.groupings.emplace_back();
      out_.groupings.back().uses = std::move(uses);
      RETURN_IF_ERROR(FindGroups());
    }
    return std::move(out_);
  }

 private:
  int32_t ProgramAt(int64_t device) const { return program_of_[orbits_.OrbitOf(device)]; }

  void FindDevices() {
    program_of_.assign(orbits_.size(), 0);
    for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
      const int64_t device = orbits_.Representative(orbit);
      program_of_[orbit] = ProgramOf(graph_, device);
      out_.devices.push_back(
          {program_of_[orbit], machine_.ComputeScale(device), orbits_.Count(orbit), device,
           graph_.skew.PlaceOf(graph_.mesh, device), machine_.SectionOf(device)});
    }
  }

  // Orbits of links, class by class, from the devices behind one link of each.
  void FindLinks() {
    const int classes = static_cast<int>(machine_.link_classes().size());
    link_of_.assign(classes, std::vector<int32_t>(orbits_.size(), -1));
    for (int link_class = 0; link_class < classes; ++link_class) {
      const LinkClass& link = machine_.link_classes()[link_class];
      if (!host_memory_ && IsForHostMemory(link)) continue;
      for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
        if (link_of_[link_class][orbit] >= 0) continue;
        const int64_t device = orbits_.Representative(orbit);
        if (!machine_.Serves(link_class, device)) continue;
        const int64_t instance = machine_.LinkInstance(link_class, device);
        const auto [first, end] = machine_.BlockOf(link_class, device);
        int64_t behind = 0;
        for (int64_t other = first; other < std::min(end, graph_.mesh.num_devices()); ++other) {
          if (machine_.LinkInstance(link_class, other) != instance) continue;
          const int32_t other_orbit = orbits_.OrbitOf(other);
          link_of_[link_class][other_orbit] = static_cast<int32_t>(out_.links.size());
          behind += other_orbit == orbit;
        }
        out_.links.push_back(
            {link_class, machine_.LinkScale(link_class, instance), orbits_.Count(orbit) / behind});
      }
    }
  }

  // Of the grouping added last. Every device is in one group of each grouping of
  // its program, so orbits of groups are sets of orbits of devices.
  absl::Status FindGroups() {
    FoldGraph::Grouping& grouping = out_.groupings.back();
    grouping.group_begin = static_cast<int32_t>(out_.groups.size());
    const CommUse& sample = input_.uses.uses[grouping.uses[0]];
    std::vector<bool> found(orbits_.size());
    if (!graph_.stage_meshes.empty()) {
      for (const GroupPattern& group : GroupsOf(graph_, sample)) {
        const int32_t orbit = orbits_.OrbitOf(group.Members()[0]);
        RETURN_IF_ERROR(AddGroup(orbit, group, sample.source, found));
      }
      grouping.group_end = static_cast<int32_t>(out_.groups.size());
      return absl::OkStatus();
    }
    const int32_t lowest = ProgramAt(sample.group.base);
    for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
      if (program_of_[orbit] != lowest || found[orbit]) continue;
      const GroupPattern group = GroupAround(graph_, sample, orbits_.Representative(orbit));
      RETURN_IF_ERROR(AddGroup(orbit, group, sample.source, found));
    }
    grouping.group_end = static_cast<int32_t>(out_.groups.size());
    return absl::OkStatus();
  }

  // The groups that lie like `pattern`, one of those of the devices `orbit`.
  absl::Status AddGroup(int32_t orbit, GroupPattern pattern, int32_t source,
                        std::vector<bool>& found) {
    const std::vector<int64_t> devices = pattern.Members();
    std::map<int32_t, int64_t> members;  // orbit -> how many
    for (int64_t device : devices) ++members[orbits_.OrbitOf(device)];
    FoldGraph::Group group;
    group.count = orbits_.Count(orbit) / members[orbit];
    const int32_t grouping = static_cast<int32_t>(out_.groupings.size()) - 1;
    const auto number = static_cast<int32_t>(out_.groups.size());
    for (const auto& [member, count] : members) {
      found[member] = true;
      out_.edges.push_back({grouping, number, FoldGraph::kMember, member, count, 1});
    }
    if (graph_.comms[input_.uses.uses[out_.groupings.back().uses[0]].comm].reshard < 0 &&
        pattern.devices.empty()) {
      pattern.base = periods_.FirstLike(pattern.base, devices.back());
    }
    for (int32_t u : out_.groupings.back().uses) {
      ASSIGN_OR_RETURN(const int32_t realised,
                       input_.comms.Price(input_.uses.uses[u].comm, pattern));
      group.realised.push_back(realised);
    }
    FindCrossings(group, number, devices, source);
    out_.groups.push_back(std::move(group));
    return absl::OkStatus();
  }

  // The links that one group loads, over all uses of its grouping.
  void FindCrossings(const FoldGraph::Group& group, int32_t number,
                     const std::vector<int64_t>& members, int32_t source) {
    std::vector<bool> loaded(machine_.link_classes().size());
    for (int32_t realised : group.realised) {
      for (const LinkLoad& load : input_.comms.realised()[realised].loads) {
        loaded[load.link_class] = true;
      }
    }
    std::vector<std::tuple<int32_t, FoldGraph::Role, int64_t>> crossed;  // (orbit, role, instance)
    for (int link_class = 0; link_class < static_cast<int>(loaded.size()); ++link_class) {
      if (!loaded[link_class]) continue;
      if (source >= 0) out_.one_way[link_class] = true;
      for (int64_t device : members) {
        if (!machine_.Serves(link_class, device)) continue;
        const int32_t orbit = orbits_.OrbitOf(device);
        const FoldGraph::Role role = source < 0                     ? FoldGraph::kBoth
                                     : program_of_[orbit] == source ? FoldGraph::kFrom
                                                                    : FoldGraph::kTo;
        crossed.emplace_back(link_of_[link_class][orbit], role,
                             machine_.LinkInstance(link_class, device));
      }
    }
    std::sort(crossed.begin(), crossed.end());
    crossed.erase(std::unique(crossed.begin(), crossed.end()), crossed.end());
    for (size_t begin = 0, end = 0; begin < crossed.size(); begin = end) {
      const auto [link, role, instance] = crossed[begin];
      while (end < crossed.size() && std::get<0>(crossed[end]) == link &&
             std::get<1>(crossed[end]) == role) {
        ++end;
      }
      const auto per_group = static_cast<int64_t>(end - begin);
      out_.edges.push_back({static_cast<int32_t>(out_.groupings.size()) - 1, number, role, link,
                            per_group, group.count * per_group / out_.links[link].count});
    }
  }

  const FoldInput& input_;
  const ExecutionGraph& graph_;
  const Machine& machine_;
  const DeviceOrbits orbits_;
  const bool host_memory_;
  const Periods periods_;
  FoldGraph out_;
  std::vector<int32_t> program_of_;            // per orbit of devices
  std::vector<std::vector<int32_t>> link_of_;  // per link class, per orbit of devices
};

}  // namespace

absl::StatusOr<SimGraph> FoldByRefinement(const FoldInput& input, bool discrete) {
  ASSIGN_OR_RETURN(const FoldGraph orbits, Refinement(input, discrete).Draw());
  return Quotient(orbits, input.machine, input.comms.realised(), input.prices, discrete);
}

}  // namespace plancast
