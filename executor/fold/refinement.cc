#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "executor/fold/blocks.h"
#include "executor/fold/colour_refinement.h"
#include "executor/fold/fold.h"
#include "executor/fold/orbits.h"

namespace plancast {
namespace {

// The part of a link that a group loads: all of it, or as sender or receiver.
enum Role : int32_t { kBoth, kFrom, kTo, kMember };

int32_t Label(size_t grouping, int32_t role) { return static_cast<int32_t>(grouping) * 4 + role; }

// Alike groups of devices that run the same uses. Every device is in one group
// of each grouping of its program, so orbits of groups are sets of orbits of
// devices.
struct GroupOrbit {
  int64_t base = 0;  // lowest device of one of them
  int64_t count = 1;
  std::vector<int32_t> realised;  // per use of the grouping
};

// Uses whose groups are the same sets of devices.
struct Grouping {
  const CommUse* sample = nullptr;
  std::vector<int32_t> uses;
  std::vector<GroupOrbit> orbits;
  int32_t first_node = 0;
};

struct LinkOrbit {
  int link_class = 0;
  int64_t instance = 0;  // one of them
  int64_t count = 1;
};

// Groups shifted by this many devices lie alike on the machine.
int64_t Period(const Machine& machine) {
  int64_t period = 1;
  for (int64_t block : BlocksOf(machine)) period = std::lcm(period, block);
  return period;
}

// Colour refinement over orbits of devices, groups and links.
class Refinement {
 public:
  Refinement(const FoldInput& input, bool discrete)
      : input_(input),
        graph_(input.graph),
        machine_(input.machine),
        discrete_(discrete),
        orbits_(input.graph, input.machine, discrete),
        one_way_(input.machine.link_classes().size()),
        period_(Period(input.machine)) {}

  absl::StatusOr<SimGraph> Fold() && {
    FindPrograms();
    FindLinks();
    FindGroupings();
    for (Grouping& grouping : groupings_) RETURN_IF_ERROR(FindGroups(grouping));
    Refine();
    AddEntities();
    AddResources();
    sim_.uses.resize(input_.uses.uses.size());
    for (size_t g = 0; g < groupings_.size(); ++g) {
      for (size_t i = 0; i < groupings_[g].uses.size(); ++i) AddGroups(groupings_[g], i);
    }
    return std::move(sim_);
  }

 private:
  int32_t ProgramAt(int64_t device) const { return program_of_[orbits_.OrbitOf(device)]; }

  void FindPrograms() {
    program_of_.assign(orbits_.size(), 0);
    for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
      const int64_t device = orbits_.Representative(orbit);
      for (size_t p = 0; p < graph_.programs.size(); ++p) {
        bool here = true;
        for (const auto& [axis, coordinate] : graph_.programs[p].where) {
          here = here && graph_.mesh.Coordinate(device, axis) == coordinate;
        }
        if (here) program_of_[orbit] = static_cast<int32_t>(p);
      }
    }
  }

  // Orbits of links, class by class, from the devices behind one link of each.
  void FindLinks() {
    first_link_node_ = orbits_.size();
    const int classes = static_cast<int>(machine_.link_classes().size());
    link_of_.assign(classes, std::vector<int32_t>(orbits_.size(), -1));
    for (int link_class = 0; link_class < classes; ++link_class) {
      const LinkClass& link = machine_.link_classes()[link_class];
      for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
        if (link_of_[link_class][orbit] >= 0) continue;
        const int64_t device = orbits_.Representative(orbit);
        LinkOrbit links;
        links.link_class = link_class;
        links.instance = machine_.LinkInstance(link_class, device);
        const int64_t first = device / link.devices_per_block * link.devices_per_block;
        int64_t behind = 0;
        for (int64_t other = first;
             other < std::min(first + link.devices_per_block, graph_.mesh.num_devices()); ++other) {
          if (machine_.LinkInstance(link_class, other) != links.instance) continue;
          const int32_t other_orbit = orbits_.OrbitOf(other);
          link_of_[link_class][other_orbit] = static_cast<int32_t>(links_.size());
          behind += other_orbit == orbit;
        }
        links.count = orbits_.Count(orbit) / behind;
        links_.push_back(links);
      }
    }
  }

  void FindGroupings() {
    std::map<std::tuple<std::vector<int>, std::vector<int32_t>, int32_t>, size_t> known;
    for (size_t u = 0; u < input_.uses.uses.size(); ++u) {
      const CommUse& use = input_.uses.uses[u];
      const auto [found, fresh] = known.try_emplace(
          {graph_.comms[use.comm].axes, use.programs, use.source}, groupings_.size());
      if (fresh) {
        groupings_.emplace_back();
        groupings_.back().sample = &use;
      }
      groupings_[found->second].uses.push_back(static_cast<int32_t>(u));
    }
  }

  absl::Status FindGroups(Grouping& grouping) {
    grouping.first_node = first_link_node_ + static_cast<int32_t>(links_.size()) + num_groups_;
    const CommUse& sample = *grouping.sample;
    const int32_t lowest = ProgramAt(sample.group.base);
    std::vector<bool> found(orbits_.size());
    for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
      if (program_of_[orbit] != lowest || found[orbit]) continue;
      GroupOrbit groups;
      groups.base = orbits_.Representative(orbit);
      for (int axis : graph_.comms[sample.comm].axes) {
        groups.base += (graph_.mesh.Coordinate(sample.group.base, axis) -
                        graph_.mesh.Coordinate(groups.base, axis)) *
                       graph_.mesh.stride(axis);
      }
      std::map<int32_t, int64_t> members;  // orbit -> how many
      for (int64_t device : MembersOf(grouping, groups.base)) ++members[orbits_.OrbitOf(device)];
      groups.count = orbits_.Count(orbit) / members[orbit];
      const int32_t node = grouping.first_node + static_cast<int32_t>(grouping.orbits.size());
      const size_t index = &grouping - groupings_.data();
      for (const auto& [member, count] : members) {
        found[member] = true;
        edges_.push_back({node, member, Label(index, kMember), count, 1});
      }
      for (int32_t u : grouping.uses) {
        GroupPattern group = sample.group;
        group.base = groups.base % period_;
        ASSIGN_OR_RETURN(const int32_t realised,
                         input_.comms.Price(input_.uses.uses[u].comm, group));
        groups.realised.push_back(realised);
      }
      FindCrossings(index, groups, node);
      grouping.orbits.push_back(std::move(groups));
      ++num_groups_;
    }
    return absl::OkStatus();
  }

  std::vector<int64_t> MembersOf(const Grouping& grouping, int64_t base) const {
    GroupPattern group = grouping.sample->group;
    group.base = base;
    return group.Members();
  }

  // The links that one group loads, over all uses of its grouping.
  void FindCrossings(size_t grouping, const GroupOrbit& groups, int32_t node) {
    std::vector<bool> loaded(machine_.link_classes().size());
    for (int32_t realised : groups.realised) {
      for (const LinkLoad& load : input_.comms.realised()[realised].loads) {
        loaded[load.link_class] = true;
      }
    }
    const int32_t source = groupings_[grouping].sample->source;
    const std::vector<int64_t> members = MembersOf(groupings_[grouping], groups.base);
    std::vector<std::tuple<int32_t, int32_t, int64_t>> crossed;  // (orbit, role, instance)
    for (int link_class = 0; link_class < static_cast<int>(loaded.size()); ++link_class) {
      if (!loaded[link_class]) continue;
      if (source >= 0) one_way_[link_class] = true;
      for (int64_t device : members) {
        const int32_t orbit = orbits_.OrbitOf(device);
        const int32_t role = source < 0 ? kBoth : program_of_[orbit] == source ? kFrom : kTo;
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
      edges_.push_back({node, first_link_node_ + link, Label(grouping, role), per_group,
                        groups.count * per_group / links_[link].count});
    }
  }

  void Refine() {
    const size_t nodes = first_link_node_ + links_.size() + num_groups_;
    adjacency_ = LabelledGraph(nodes);
    for (const Edge& e : edges_) adjacency_.AddEdge(e.a, e.b, e.label, e.b_per_a, e.a_per_b);
    adjacency_.Index();
    std::vector<int32_t> colours(nodes);
    if (discrete_) {
      std::iota(colours.begin(), colours.end(), 0);
    } else {
      SetInitialColours(colours);
    }
    colours_ = RefineColours(adjacency_, std::move(colours));
  }

  void SetInitialColours(std::vector<int32_t>& colours) const {
    std::map<std::vector<double>, int32_t> known;
    const auto colour = [&](std::vector<double> key) {
      return known.try_emplace(std::move(key), static_cast<int32_t>(known.size())).first->second;
    };
    for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
      colours[orbit] = colour({0, static_cast<double>(program_of_[orbit]),
                               machine_.ComputeScale(orbits_.Representative(orbit))});
    }
    for (size_t l = 0; l < links_.size(); ++l) {
      colours[first_link_node_ + l] =
          colour({1, static_cast<double>(links_[l].link_class),
                  machine_.LinkScale(links_[l].link_class, links_[l].instance)});
    }
    for (size_t g = 0; g < groupings_.size(); ++g) {
      for (size_t i = 0; i < groupings_[g].orbits.size(); ++i) {
        std::vector<double> key = {2, static_cast<double>(g)};
        for (int32_t realised : groupings_[g].orbits[i].realised) key.push_back(realised);
        colours[groupings_[g].first_node + i] = colour(std::move(key));
      }
    }
  }

  void AddEntities() {
    struct Row {
      int64_t device = -1, devices = 0;
    };
    std::map<std::pair<int32_t, int32_t>, Row> rows;  // (program, colour)
    for (int32_t orbit = 0; orbit < orbits_.size(); ++orbit) {
      Row& row = rows[{program_of_[orbit], colours_[orbit]}];
      const int64_t device = orbits_.Representative(orbit);
      if (row.device < 0 || device < row.device) row.device = device;
      row.devices += orbits_.Count(orbit);
    }
    std::vector<std::tuple<int32_t, int64_t, int32_t>> order;  // (program, device, colour)
    for (const auto& [key, row] : rows) order.emplace_back(key.first, row.device, key.second);
    std::sort(order.begin(), order.end());
    entity_of_colour_.resize(colours_.size(), -1);
    for (const auto& [program, device, colour] : order) {
      entity_of_colour_[colour] = static_cast<int32_t>(sim_.entities.size());
      sim_.entities.push_back({program, input_.prices.RowFor(machine_.ComputeScale(device)),
                               rows[{program, colour}].devices, device});
    }
  }

  void AddResources() {
    resource_of_colour_.resize(colours_.size(), -1);
    for (size_t l = 0; l < links_.size(); ++l) {
      const LinkOrbit& link = links_[l];
      const bool separate = Directions(link.link_class).separate;
      int32_t& resource = resource_of_colour_[colours_[first_link_node_ + l]];
      if (resource < 0) {
        resource = static_cast<int32_t>(sim_.resources.size());
        const double scale = machine_.LinkScale(link.link_class, link.instance);
        sim_.resources.resize(sim_.resources.size() + (separate ? 2 : 1),
                              {LinkCapacity(machine_, link.link_class, scale), link.link_class, 0});
      }
      sim_.resources[resource].links += link.count;
      if (separate) sim_.resources[resource + 1].links += link.count;
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
    for (size_t i = 0; i < grouping.orbits.size(); ++i) {
      const int32_t node = grouping.first_node + static_cast<int32_t>(i);
      const auto [found, fresh] =
          class_of.try_emplace(colours_[node], static_cast<int32_t>(sim_.groups.size()));
      if (!fresh) {
        sim_.groups[found->second].groups += grouping.orbits[i].count;
        continue;
      }
      SimGraph::Group group;
      group.use = u;
      group.realised = grouping.orbits[i].realised[use_in_grouping];
      group.groups = grouping.orbits[i].count;
      AddMembers(node, group);
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

  void AddMembers(int32_t node, SimGraph::Group& group) {
    std::vector<int32_t> members;
    for (const auto* edge = adjacency_.begin(node); edge != adjacency_.end(node); ++edge) {
      if (edge->node >= orbits_.size()) continue;
      members.push_back(entity_of_colour_[colours_[edge->node]]);
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    group.member_begin = static_cast<int32_t>(sim_.members.size());
    sim_.members.insert(sim_.members.end(), members.begin(), members.end());
    group.member_end = static_cast<int32_t>(sim_.members.size());
  }

  void AddLoads(int32_t node, SimGraph::Group& group) {
    std::map<int32_t, int64_t> loads;  // resource -> coefficient
    std::vector<std::pair<int32_t, int32_t>> seen;
    for (const auto* edge = adjacency_.begin(node); edge != adjacency_.end(node); ++edge) {
      if (edge->node < first_link_node_) continue;
      const std::pair<int32_t, int32_t> reached = {colours_[edge->node], edge->label};
      if (std::find(seen.begin(), seen.end(), reached) != seen.end()) continue;
      seen.push_back(reached);
      AddLoad(node, edge->node, edge->label, group, loads);
    }
    group.load_begin = static_cast<int32_t>(sim_.loads.size());
    for (const auto& [resource, coefficient] : loads) {
      sim_.loads.push_back({resource, coefficient});
    }
    group.load_end = static_cast<int32_t>(sim_.loads.size());
  }

  // What all groups like `node` put on one link of the class of `link`.
  void AddLoad(int32_t node, int32_t link, int32_t label, const SimGraph::Group& group,
               std::map<int32_t, int64_t>& loads) {
    const int link_class = links_[link - first_link_node_].link_class;
    int64_t coefficient = 0;
    for (const LinkLoad& load : input_.comms.realised()[group.realised].loads) {
      if (load.link_class == link_class) coefficient = load.coefficient_q20;
    }
    if (coefficient == 0) return;
    int64_t crossing = 0;
    for (const auto* edge = adjacency_.begin(link); edge != adjacency_.end(link); ++edge) {
      if (edge->label == label && colours_[edge->node] == colours_[node]) crossing += edge->count;
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

  struct Edge {
    int32_t a, b, label;
    int64_t b_per_a, a_per_b;
  };

  const FoldInput& input_;
  const ExecutionGraph& graph_;
  const Machine& machine_;
  const bool discrete_;
  const DeviceOrbits orbits_;
  std::vector<bool> one_way_;  // per link class
  const int64_t period_;
  SimGraph sim_;
  std::vector<int32_t> program_of_;            // per orbit of devices
  std::vector<std::vector<int32_t>> link_of_;  // per link class, per orbit of devices
  std::vector<LinkOrbit> links_;
  std::vector<Grouping> groupings_;
  int32_t num_groups_ = 0;
  // Nodes: orbits of devices, of links, of groups.
  int32_t first_link_node_ = 0;
  std::vector<Edge> edges_;
  LabelledGraph adjacency_{0};
  std::vector<int32_t> colours_;
  std::vector<int32_t> entity_of_colour_, resource_of_colour_;
};

}  // namespace

absl::StatusOr<SimGraph> FoldByRefinement(const FoldInput& input, bool discrete) {
  return Refinement(input, discrete).Fold();
}

}  // namespace plancast
