#ifndef PLANCAST_EXECUTOR_SIM_GRAPH_H_
#define PLANCAST_EXECUTOR_SIM_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cluster/machine.h"
#include "executor/sharing/fluid.h"

namespace plancast {

// What the simulator runs: entities, groups and resources. An entity stands for
// a class of devices that do the same at the same time, a group for a class of
// groups, a resource for one direction of a class of links. In flat form each
// class has one member; the simulator does not know.
//
// Invariants: every entity of the programs of a use belongs to exactly one group
// of the use; the load of a group on a resource is the coefficient of one
// communication times the number of groups of the class on each link.
struct SimGraph {
  struct Entity {
    int32_t program = 0;
    int32_t price_row = 0;  // speed, place and kind of its devices, see KernelPrices
    int64_t devices = 1;
    int64_t representative = 0;  // the lowest device
    int64_t place = 0;           // Skew::PlaceOf
    int kind = 0;                // section of the machine
  };
  struct Group {
    int32_t use = 0;
    int32_t realised = 0;  // into CommPricer::realised()
    int64_t groups = 1;
    int32_t member_begin = 0, member_end = 0;
    int32_t load_begin = 0, load_end = 0;
  };
  // The groups of a use. If there are several, `table` says which one an entity
  // belongs to: group_table[table + entity].
  struct Use {
    int32_t first_group = 0, num_groups = 0;
    int32_t table = -1;
  };
  struct Resource {
    int64_t capacity_bytes_per_s = 0;
    int32_t link_class = 0;
    int64_t links = 1;
    Level level = Level::kCluster;  // LinkClass::reaches
  };

  std::vector<Entity> entities;  // ascending program, then representative
  std::vector<Group> groups;
  std::vector<Use> uses;  // like CommUses::uses
  std::vector<Resource> resources;
  std::vector<int32_t> members;  // entities, ascending within a group
  std::vector<Fluid::Use> loads;
  std::vector<int32_t> group_table;

  int32_t GroupOf(int32_t use, int32_t entity) const {
    const Use& u = uses[use];
    return u.table < 0 ? u.first_group : group_table[u.table + entity];
  }
  absl::Span<const int32_t> MembersOf(const Group& group) const {
    return absl::MakeConstSpan(members).subspan(group.member_begin,
                                                group.member_end - group.member_begin);
  }
  absl::Span<const Fluid::Use> LoadsOf(const Group& group) const {
    return absl::MakeConstSpan(loads).subspan(group.load_begin, group.load_end - group.load_begin);
  }

  // Stable text: entities, groups with their loads, resources.
  std::string DebugString() const;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIM_GRAPH_H_
