#ifndef PLANCAST_EXECUTOR_FOLD_QUOTIENT_H_
#define PLANCAST_EXECUTOR_FOLD_QUOTIENT_H_

#include <cstdint>
#include <vector>

#include "cluster/machine.h"
#include "collectives/realise.h"
#include "executor/realise.h"
#include "executor/sim_graph.h"

namespace plancast {

// {devices, links, groups} before they are cut into classes. Each may stand for
// several that are alike (an orbit).
struct FoldGraph {
  // The part of a link that a group loads: all of it, or as sender or receiver.
  enum Role : int32_t { kBoth, kFrom, kTo, kMember };

  struct Device {
    int32_t program = 0;
    double compute_scale = 1;
    int64_t count = 1;
    int64_t representative = 0;  // lowest, on the machine
    int64_t place = 0;           // Skew::PlaceOf
    int kind = 0;                // section of the machine
  };
  struct Link {
    int link_class = 0;
    double capacity_scale = 1;
    int64_t count = 1;
  };
  struct Group {
    int64_t count = 1;
    std::vector<int32_t> realised;  // per use of the grouping
  };
  // Uses whose groups are the same sets of devices.
  struct Grouping {
    std::vector<int32_t> uses;
    int32_t group_begin = 0, group_end = 0;
  };
  // Between a group and a member or a link that it loads.
  struct Edge {
    int32_t grouping = 0, group = 0;
    Role role = kMember;
    int32_t other = 0;  // a device, if kMember, else a link
    int64_t others_per_group = 1, groups_per_other = 1;
  };

  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<Group> groups;
  std::vector<Grouping> groupings;
  std::vector<Edge> edges;
  std::vector<bool> one_way;  // per link class: some one-way message crosses it
  int32_t num_uses = 0;
};

// Cuts it into the coarsest equitable partition that starts from programs, kinds and
// speeds of devices, speeds of links, and outcomes of realisation; `discrete`: into single
// nodes. `prices` takes up the speeds.
SimGraph Quotient(const FoldGraph& graph, const Machine& machine,
                  const std::vector<RealisedCollective>& realised, KernelPrices& prices,
                  bool discrete);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_FOLD_QUOTIENT_H_
