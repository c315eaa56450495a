#include "executor/fold/quotient.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "executor/fold/colour_refinement.h"
#include "executor/fold/link_directions.h"

namespace plancast {
namespace {

int32_t Label(int32_t grouping, FoldGraph::Role role) { return grouping * 4 + role; }

class Classes {
 public:
  Classes(const FoldGraph& graph, const Machine& machine,
          const std::vector<RealisedCollective>& realised, KernelPrices& prices)
      : in_(graph),
        machine_(machine),
        realised_(realised),
        prices_(prices),
        first_link_(static_cast<int32_t>(graph.devices.size())),
        first_group_(first_link_ + static_cast<int32_t>(graph.links.size())) {}

  SimGraph Cut(bool discrete) && {
    Refine(discrete);
    AddEntities();
    AddResources();
    sim_.uses.resize(in_.num_uses);
    for (const FoldGraph::Grouping& grouping : in_.groupings) {
      for (size_t i = 0; i < grouping.uses.size(); ++i) AddGroups(grouping, i);
    }
    return std::move(sim_);
  }

 private:
  void Refine(bool discrete) {
    const size_t nodes = first_group_ + in_.groups.size();
    adjacency_ = LabelledGraph(nodes);
    for (const FoldGraph::Edge& e : in_.edges) {
      const int32_t other = e.role == FoldGraph::kMember ? e.other : first_link_ + e.other;
      adjacency_.AddEdge(first_group_ + e.group, other, Label(e.grouping, e.role),
                         e.others_per_group, e.groups_per_other);
    }
    adjacency_.Index();
    std::vector<int32_t> colours(nodes);
    if (discrete) {
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
    for (size_t d = 0; d < in_.devices.size(); ++d) {
      const FoldGraph::Device& device = in_.devices[d];
      colours[d] = colour({0, static_cast<double>(device.program), device.compute_scale,
                           static_cast<double>(device.place), static_cast<double>(device.kind)});
    }
    for (size_t l = 0; l < in_.links.size(); ++l) {
      colours[first_link_ + l] =
          colour({1, static_cast<double>(in_.links[l].link_class), in_.links[l].capacity_scale});
    }
    for (size_t g = 0; g < in_.groupings.size(); ++g) {
      for (int32_t i = in_.groupings[g].group_begin; i < in_.groupings[g].group_end; ++i) {
        std::vector<double> key = {2, static_cast<double>(g)};
        for (int32_t realised : in_.groups[i].realised) key.push_back(realised);
        colours[first_group_ + i] = colour(std::move(key));
      }
    }
  }

  void AddEntities() {
    struct Row {
      int32_t device = -1;  // the lowest
      int64_t devices = 0;
    };
    std::map<std::pair<int32_t, int32_t>, Row> rows;  // (program, colour)
    for (int32_t d = 0; d < first_link_; ++d) {
      const FoldGraph::Device& device = in_.devices[d];
      Row& row = rows[{device.program, colours_[d]}];
      if (row.device < 0 || device.representative < in_.devices[row.device].representative) {
        row.device = d;
      }
      row.devices += device.count;
    }
    std::vector<std::tuple<int32_t, int64_t, int32_t>> order;  // (program, device, colour)
    for (const auto& [key, row] : rows) {
      order.emplace_back(key.first, in_.devices[row.device].representative, key.second);
    }
    std::sort(order.begin(), order.end());
    entity_of_colour_.resize(colours_.size(), -1);
    for (const auto& [program, representative, colour] : order) {
      const Row& row = rows[{program, colour}];
      entity_of_colour_[colour] = static_cast<int32_t>(sim_.entities.size());
      const FoldGraph::Device& device = in_.devices[row.device];
      sim_.entities.push_back({program,
                               prices_.RowFor({device.compute_scale, device.place, device.kind}),
                               row.devices, representative, device.place, device.kind});
    }
  }

  void AddResources() {
    resource_of_colour_.resize(colours_.size(), -1);
    for (size_t l = 0; l < in_.links.size(); ++l) {
      const FoldGraph::Link& link = in_.links[l];
      const bool separate = Directions(link.link_class).separate;
      int32_t& resource = resource_of_colour_[colours_[first_link_ + l]];
      if (resource < 0) {
        resource = static_cast<int32_t>(sim_.resources.size());
        sim_.resources.resize(
            sim_.resources.size() + (separate ? 2 : 1),
            {LinkCapacity(machine_, link.link_class, link.capacity_scale), link.link_class, 0,
             machine_.link_classes()[link.link_class].reaches});
      }
      sim_.resources[resource].links += link.count;
      if (separate) sim_.resources[resource + 1].links += link.count;
    }
  }

  LinkDirections Directions(int link_class) const {
    return DirectionsOf(machine_, link_class, in_.one_way[link_class]);
  }

  // The classes of groups of one use.
  void AddGroups(const FoldGraph::Grouping& grouping, size_t use_in_grouping) {
    const int32_t u = grouping.uses[use_in_grouping];
    SimGraph::Use& use = sim_.uses[u];
    use.first_group = static_cast<int32_t>(sim_.groups.size());
    std::map<int32_t, int32_t> class_of;  // colour -> group
    for (int32_t i = grouping.group_begin; i < grouping.group_end; ++i) {
      const int32_t node = first_group_ + i;
      const auto [found, fresh] =
          class_of.try_emplace(colours_[node], static_cast<int32_t>(sim_.groups.size()));
      if (!fresh) {
        sim_.groups[found->second].groups += in_.groups[i].count;
        continue;
      }
      SimGraph::Group group;
      group.use = u;
      group.realised = in_.groups[i].realised[use_in_grouping];
      group.groups = in_.groups[i].count;
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
      if (edge->node >= first_link_) continue;
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
      if (edge->node < first_link_) continue;
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
    const int link_class = in_.links[link - first_link_].link_class;
    const int32_t role = label % 4;
    int64_t coefficient = 0;
    for (const LinkLoad& load : realised_[group.realised].loads) {
      if (load.link_class != link_class) continue;
      coefficient = role == FoldGraph::kTo ? load.ReceivedQ20() : load.coefficient_q20;
    }
    if (coefficient == 0) return;
    int64_t crossing = 0;
    for (const auto* edge = adjacency_.begin(link); edge != adjacency_.end(link); ++edge) {
      if (edge->label == label && colours_[edge->node] == colours_[node]) crossing += edge->count;
    }
    coefficient *= crossing;
    const int32_t resource = resource_of_colour_[colours_[link]];
    const LinkDirections directions = Directions(link_class);
    if (role != FoldGraph::kTo || !directions.separate) {
      loads[resource] += coefficient * (role == FoldGraph::kBoth ? directions.both_ways : 1);
    }
    if (directions.separate && role != FoldGraph::kFrom) loads[resource + 1] += coefficient;
  }

  const FoldGraph& in_;
  const Machine& machine_;
  const std::vector<RealisedCollective>& realised_;
  KernelPrices& prices_;
  // Nodes: devices, links, groups.
  const int32_t first_link_, first_group_;
  LabelledGraph adjacency_{0};
  std::vector<int32_t> colours_;
  std::vector<int32_t> entity_of_colour_, resource_of_colour_;
  SimGraph sim_;
};

}  // namespace

SimGraph Quotient(const FoldGraph& graph, const Machine& machine,
                  const std::vector<RealisedCollective>& realised, KernelPrices& prices,
                  bool discrete) {
  return Classes(graph, machine, realised, prices).Cut(discrete);
}

}  // namespace plancast
