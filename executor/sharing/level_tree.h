#ifndef PLANCAST_EXECUTOR_SHARING_LEVEL_TREE_H_
#define PLANCAST_EXECUTOR_SHARING_LEVEL_TREE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cluster/machine.h"
#include "executor/sharing/activity_kinds.h"

namespace plancast {

// Where sharing is local: device -> host -> domain -> pod -> cluster.
//
// The level of an activity is that of the outermost contended link that it loads:
// an all-reduce over the NVLinks of a host is the host's, one that also takes NICs
// is the pod's or the cluster's. A *domain* of a level is a set of links that the
// activities up to that level connect, so the domains of a level lie inside those
// of the next, and what goes on in two domains of a level is independent unless
// an activity of an outer level connects them:
//
//     cluster                 NICs, spine
//                           /             \       .
//     host          NVLinks of host 0   NVLinks of host 1
//
// Invariants: domains are numbered so that a domain comes before those inside it
// and they follow it without a gap; a link belongs to the innermost domain that
// has it; kinds that load no contended link are at home in domain 0.
class LevelTree {
 public:
  struct Domain {
    Level level = Level::kDevice;
    int32_t parent = -1;  // the domain of an outer level around it
    int32_t end = 0;      // domains inside: numbers up to here
    // The kinds of its activities and of those inside: places in kinds().
    int32_t kind_begin = 0, kind_end = 0;
  };

  LevelTree() = default;
  // `levels`: of the resources. `contended`: of the resources; others connect
  // nothing.
  LevelTree(const ActivityKinds& kinds, const std::vector<Level>& levels,
            const std::vector<bool>& contended);

  const std::vector<Domain>& domains() const { return domains_; }
  // All kinds, those of a domain together.
  const std::vector<int32_t>& kinds() const { return kinds_; }
  int32_t PlaceOf(int32_t kind) const { return place_of_kind_[kind]; }
  // The domain where activities of the kind are at home.
  int32_t HomeOf(int32_t kind) const { return home_of_kind_[kind]; }
  // The domains inside its home whose links it loads, and those between.
  absl::Span<const int32_t> CrossedBy(int32_t kind) const {
    return absl::MakeConstSpan(crossed_).subspan(crossed_begin_[kind],
                                                 crossed_begin_[kind + 1] - crossed_begin_[kind]);
  }

  // Stable text: one line a domain, indented by depth.
  std::string DebugString() const;

 private:
  void Connect(const ActivityKinds& kinds, const std::vector<Level>& levels,
               const std::vector<bool>& contended);
  void Number();
  void SortKinds(int32_t num_kinds);
  void FindCrossed(const ActivityKinds& kinds);

  std::vector<Domain> domains_;
  std::vector<int32_t> domain_of_resource_;  // -1: of none
  std::vector<int32_t> home_of_kind_;
  std::vector<int32_t> kinds_, place_of_kind_;
  std::vector<int32_t> crossed_begin_, crossed_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SHARING_LEVEL_TREE_H_
