#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"
#include "executor/fold/colour_refinement.h"
#include "executor/fold/fold.h"

namespace plancast {
namespace {

// The part of a link that a group loads: all of it, or as sender or receiver.
enum Role : int32_t { kBoth, kFrom, kTo };

// Uses whose groups are the same sets of devices.
struct Grouping {
  const CommUse* sample = nullptr;
  std::vector<int32_t> uses;
  std::vector<int64_t> bases;              // lowest device of each group
  int32_t first_node = 0;                  // node of the first group
  std::vector<std::vector<int32_t>> realised;  // per use, per group
};

struct Crossing {
  int32_t link_class, link, role;  // `link`: node of the link
  friend bool operator<(const Crossing& a, const Crossing& b) {
    return std::tie(a.link_class, a.link, a.role) < std::tie(b.link_class, b.link, b.role);
  }
  friend bool operator==(const Crossing& a, const Crossing& b) {
    return a.link == b.link && a.role == b.role;
  }
};

// Groups shifted by this many devices lie alike on the machine.
int64_t Period(const Machine& machine) {
  int64_t period = machine.gpus_per_domain();
  if (machine.spec().gpus_per_switch > 0) {
    period = std::lcm(period, machine.spec().gpus_per_switch);
  }
  for (const LinkClass& link : machine.link_classes()) {
    period = std::lcm(period, link.devices_per_block);
  }
  return period;
}

class Refinement {
 public:
  Refinement(const FoldInput& input, bool discrete)
      : input_(input),
        graph_(input.graph),
        machine_(input.machine),
        discrete_(discrete),
        num_devices_(graph_.mesh.num_devices()) {}

  absl::StatusOr<SimGraph> Fold() && {
    FindProgramOfDevices();
    FindGroupings();
    RETURN_IF_ERROR(Realise());
    Refine();
    AddEntities();
    AddResources();
    sim_.uses.resize(input_.uses.uses.size());
    for (Grouping& grouping : groupings_) {
      for (size_t i = 0; i < grouping.uses.size(); ++i) AddGroups(grouping, i);
    }
    return std::move(sim_);
  }

 private:
  void FindProgramOfDevices() {
    program_of_.assign(num_devices_, 0);
    for (size_t p = 0; p < graph_.programs.size(); ++p) {
      for (int64_t device = 0; device < num_devices_; ++device) {
        bool here = true;
        for (const auto& [axis, coordinate] : graph_.programs[p].where) {
          here = here && graph_.mesh.Coordinate(device, axis) == coordinate;
        }
        if (here) program_of_[device] = static_cast<int32_t>(p);
      }
    }
  }

  void FindGroupings() {
    std::map<std::tuple<std::vector<int>, std::vector<int32_t>, int32_t>, size_t> known;
    int32_t node = static_cast<int32_t>(num_devices_);
    for (size_t u = 0; u < input_.uses.uses.size(); ++u) {
      const CommUse& use = input_.uses.uses[u];
      const auto [found, fresh] = known.try_emplace(
          {graph_.comms[use.comm].axes, use.programs, use.source}, groupings_.size());
      if (fresh) {
        Grouping grouping;
        grouping.sample = &use;
        grouping.bases = BasesOf(use);
        grouping.first_node = node;
        node += static_cast<int32_t>(grouping.bases.size());
        groupings_.push_back(std::move(grouping));
      }
      groupings_[found->second].uses.push_back(static_cast<int32_t>(u));
    }
    first_link_node_ = node;
  }

  // All devices of the program with the lowest ones that lie first in their group.
  std::vector<int64_t> BasesOf(const CommUse& use) const {
    const int32_t lowest = program_of_[use.group.base];
    std::vector<int64_t> bases;
    for (int64_t device = 0; device < num_devices_; ++device) {
      bool first = program_of_[device] == lowest;
      for (int axis : graph_.comms[use.comm].axes) {
        first = first && graph_.mesh.Coordinate(device, axis) ==
                             graph_.mesh.Coordinate(use.group.base, axis);
      }
      if (first) bases.push_back(device);
    }
    return bases;
  }

  absl::Status Realise() {
    const int64_t period = Period(machine_);
    for (Grouping& grouping : groupings_) {
      for (int32_t u : grouping.uses) {
        const CommUse& use = input_.uses.uses[u];
        std::vector<int32_t>& realised = grouping.realised.emplace_back();
        for (int64_t base : grouping.bases) {
          GroupPattern group = use.group;
          group.base = base % period;
          ASSIGN_OR_RETURN(const int32_t priced, input_.comms.Price(use.comm, group));
          realised.push_back(priced);
        }
      }
    }
    return absl::OkStatus();
  }

  std::vector<int64_t> MembersOf(const Grouping& grouping, int64_t base) const {
    GroupPattern group = grouping.sample->group;
    group.base = base;
    return group.Members();
  }

  int32_t LinkNode(int link_class, int64_t device) {
    const int64_t instance = machine_.LinkInstance(link_class, device);
    const auto [found, fresh] = links_.try_emplace(
        std::make_pair(link_class, instance),
        first_link_node_ + static_cast<int32_t>(links_.size()));
    if (fresh) link_of_node_.push_back(found->first);
    return found->second;
  }

  // The links that a group loads, over all its uses.
  std::vector<Crossing> CrossingsOf(const Grouping& grouping, size_t index,
                                    const std::vector<int64_t>& members) {
    std::vector<int> classes;
    for (const std::vector<int32_t>& realised : grouping.realised) {
      for (const LinkLoad& load : input_.comms.realised()[realised[index]].loads) {
        classes.push_back(load.link_class);
      }
    }
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    std::vector<Crossing> crossings;
    const int32_t source = grouping.sample->source;
    for (int link_class : classes) {
      for (int64_t device : members) {
        const int32_t role = source < 0                         ? kBoth
                             : program_of_[device] == source ? kFrom
                                                                : kTo;
        crossings.push_back({link_class, LinkNode(link_class, device), role});
      }
    }
    std::sort(crossings.begin(), crossings.end());
    crossings.erase(std::unique(crossings.begin(), crossings.end()), crossings.end());
    return crossings;
  }

  void Refine() {
    // Links get their nodes as groups are found to cross them.
    std::vector<std::tuple<int32_t, int32_t, int32_t>> edges;
    for (size_t g = 0; g < groupings_.size(); ++g) {
      const Grouping& grouping = groupings_[g];
      for (size_t i = 0; i < grouping.bases.size(); ++i) {
        const int32_t node = grouping.first_node + static_cast<int32_t>(i);
        const std::vector<int64_t> members = MembersOf(grouping, grouping.bases[i]);
        for (int64_t device : members) {
          edges.emplace_back(node, static_cast<int32_t>(device), static_cast<int32_t>(g) * 4 + 3);
        }
        for (const Crossing& crossing : CrossingsOf(grouping, i, members)) {
          one_way_.resize(machine_.link_classes().size());
          if (crossing.role != kBoth) one_way_[crossing.link_class] = true;
          edges.emplace_back(node, crossing.link, static_cast<int32_t>(g) * 4 + crossing.role);
        }
      }
    }
    one_way_.resize(machine_.link_classes().size());
    const size_t nodes = first_link_node_ + links_.size();
    adjacency_ = LabelledGraph(nodes);
    for (const auto& [a, b, label] : edges) adjacency_.AddEdge(a, b, label);
    adjacency_.Index();
    colours_ = RefineColours(adjacency_, InitialColours(nodes));
  }

  std::vector<int32_t> InitialColours(size_t nodes) {
    std::vector<int32_t> colours(nodes);
    if (discrete_) {
      std::iota(colours.begin(), colours.end(), 0);
      return colours;
    }
    std::map<std::vector<double>, int32_t> known;
    const auto colour = [&](const std::vector<double>& key) {
      return known.try_emplace(key, static_cast<int32_t>(known.size())).first->second;
    };
    for (int64_t device = 0; device < num_devices_; ++device) {
      colours[device] = colour({0, double(program_of_[device]), machine_.ComputeScale(device)});
    }
    for (size_t g = 0; g < groupings_.size(); ++g) {
      const Grouping& grouping = groupings_[g];
      for (size_t i = 0; i < grouping.bases.size(); ++i) {
        std::vector<double> key = {1, double(g)};
        for (const auto& realised : grouping.realised) key.push_back(realised[i]);
        colours[grouping.first_node + i] = colour(key);
      }
    }
    for (size_t l = 0; l < link_of_node_.size(); ++l) {
      const auto [link_class, instance] = link_of_node_[l];
      colours[first_link_node_ + l] =
          colour({2, double(link_class), machine_.LinkScale(link_class, instance)});
    }
    return colours;
  }

  void AddEntities() {
    std::map<std::pair<int32_t, int32_t>, int32_t> order;  // (program, colour) -> device
    std::map<int32_t, int64_t> members;
    for (int64_t device = num_devices_ - 1; device >= 0; --device) {
      order[{program_of_[device], colours_[device]}] = static_cast<int32_t>(device);
      ++members[colours_[device]];
    }
    std::vector<std::pair<int32_t, int32_t>> representatives;
    for (const auto& [key, device] : order) representatives.emplace_back(key.first, device);
    std::sort(representatives.begin(), representatives.end());
    for (const auto& [program, device] : representatives) {
      entity_of_colour_[colours_[device]] = static_cast<int32_t>(sim_.entities.size());
      sim_.entities.push_back({program, input_.prices.RowFor(machine_.ComputeScale(device)),
                               members[colours_[device]], device});
    }
  }

  void AddResources() {
    for (size_t l = 0; l < link_of_node_.size(); ++l) {
      const int32_t node = first_link_node_ + static_cast<int32_t>(l);
      const auto [found, fresh] = resource_of_colour_.try_emplace(
          colours_[node], static_cast<int32_t>(sim_.resources.size()));
      const auto [link_class, instance] = link_of_node_[l];
      if (fresh) {
        link_of_colour_[colours_[node]] = node;
        const SimGraph::Resource resource = {
            LinkCapacity(machine_, link_class, machine_.LinkScale(link_class, instance)),
            link_class, 0};
        sim_.resources.push_back(resource);
        if (Directions(link_class).separate) sim_.resources.push_back(resource);
      }
      ++sim_.resources[found->second].links;
      if (Directions(link_class).separate) ++sim_.resources[found->second + 1].links;
    }
  }

  LinkDirections Directions(int link_class) const {
    return DirectionsOf(machine_, link_class, one_way_[link_class]);
  }

  // The classes of groups of one use.
  void AddGroups(const Grouping& grouping, size_t use_in_grouping) {
    const int32_t u = grouping.uses[use_in_grouping];
    SimGraph::Use& use = sim_.uses[u];
    use.first_group = static_cast<int32_t>(sim_.groups.size());
    std::map<int32_t, int32_t> class_of;  // colour -> group
    for (size_t i = 0; i < grouping.bases.size(); ++i) {
      const int32_t node = grouping.first_node + static_cast<int32_t>(i);
      const auto [found, fresh] =
          class_of.try_emplace(colours_[node], static_cast<int32_t>(sim_.groups.size()));
      if (!fresh) {
        ++sim_.groups[found->second].groups;
        continue;
      }
      SimGraph::Group group;
      group.use = u;
      group.realised = grouping.realised[use_in_grouping][i];
      AddMembers(grouping, grouping.bases[i], group);
      AddLoads(node, group);
      sim_.groups.push_back(group);
    }
    use.num_groups = static_cast<int32_t>(class_of.size());
    if (use.num_groups == 1) return;
    use.table = static_cast<int32_t>(sim_.group_table.size());
    sim_.group_table.resize(sim_.group_table.size() + sim_.entities.size(), -1);
    for (int32_t g = use.first_group; g < use.first_group + use.num_groups; ++g) {
      for (int32_t member : sim_.MembersOf(sim_.groups[g])) {
        sim_.group_table[use.table + member] = g;
      }
    }
  }

  void AddMembers(const Grouping& grouping, int64_t base, SimGraph::Group& group) {
    std::vector<int32_t> members;
    for (int64_t device : MembersOf(grouping, base)) {
      members.push_back(entity_of_colour_[colours_[device]]);
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    group.member_begin = static_cast<int32_t>(sim_.members.size());
    sim_.members.insert(sim_.members.end(), members.begin(), members.end());
    group.member_end = static_cast<int32_t>(sim_.members.size());
  }

  void AddLoads(int32_t node, SimGraph::Group& group) {
    group.load_begin = static_cast<int32_t>(sim_.loads.size());
    std::map<int32_t, int64_t> loads;  // resource -> coefficient
    std::vector<std::pair<int32_t, int32_t>> seen;
    for (const auto* edge = adjacency_.begin(node); edge != adjacency_.end(node); ++edge) {
      if (edge->node < first_link_node_) continue;
      const std::pair<int32_t, int32_t> reached = {colours_[edge->node], edge->label};
      if (std::find(seen.begin(), seen.end(), reached) != seen.end()) continue;
      seen.push_back(reached);
      AddLoad(node, edge->node, edge->label, group, loads);
    }
    for (const auto& [resource, coefficient] : loads) {
      sim_.loads.push_back({resource, coefficient});
    }
    group.load_end = static_cast<int32_t>(sim_.loads.size());
  }

  // What all groups like `node` put on one link of the class of `link`.
  void AddLoad(int32_t node, int32_t link, int32_t label, const SimGraph::Group& group,
               std::map<int32_t, int64_t>& loads) {
    const int link_class = link_of_node_[link - first_link_node_].first;
    int64_t coefficient = 0;
    for (const LinkLoad& load : input_.comms.realised()[group.realised].loads) {
      if (load.link_class == link_class) coefficient = load.coefficient_q20;
    }
    if (coefficient == 0) return;
    int64_t crossing = 0;
    for (const auto* edge = adjacency_.begin(link); edge != adjacency_.end(link); ++edge) {
      crossing += edge->label == label && colours_[edge->node] == colours_[node];
    }
    coefficient *= crossing;
    const int32_t resource = resource_of_colour_[colours_[link]];
    const LinkDirections directions = Directions(link_class);
    const int32_t role = label % 4;
    if (role != kTo || !directions.separate) {
      loads[resource] += coefficient * (role == kBoth ? directions.both_ways : 1);
    }
    if (directions.separate && role != kFrom) loads[resource + 1] += coefficient;
  }

  const FoldInput& input_;
  const ExecutionGraph& graph_;
  const Machine& machine_;
  const bool discrete_;
  const int64_t num_devices_;
  SimGraph sim_;
  std::vector<int32_t> program_of_;  // per device
  std::vector<Grouping> groupings_;
  // Nodes: devices, groups of each grouping, links.
  int32_t first_link_node_ = 0;
  absl::flat_hash_map<std::pair<int, int64_t>, int32_t> links_;
  std::vector<std::pair<int, int64_t>> link_of_node_;
  std::vector<bool> one_way_;  // per link class
  LabelledGraph adjacency_{0};
  std::vector<int32_t> colours_;
  absl::flat_hash_map<int32_t, int32_t> entity_of_colour_, resource_of_colour_, link_of_colour_;
};

}  // namespace

absl::StatusOr<SimGraph> FoldByRefinement(const FoldInput& input, bool discrete) {
  return Refinement(input, discrete).Fold();
}

}  // namespace plancast
