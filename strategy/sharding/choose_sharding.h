#ifndef PLANCAST_STRATEGY_SHARDING_CHOOSE_SHARDING_H_
#define PLANCAST_STRATEGY_SHARDING_CHOOSE_SHARDING_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// What nodes of a tree shard for themselves.
struct NodeSharding {
  int zero = 0;                // StrategyTree::MostShardedBelow
  std::set<std::string> axes;  // over which
};

// Settles what is sharded over dp and cp, when it is gathered and reduced, and what is on the host
// (`zero`, `hsdp`, `reshard`, `prefetch`, `unit`, `sync`, `offload`), after the mesh and the
// micro-batches. Sentences for people are added to `notes` (nullptr: wanted by nobody). Errors:
// groups that do not divide the ranks, with sizes that work; what contradicts `zero`.
absl::Status ChooseSharding(const ShortForm& form, const NodeSharding& nodes,
                            const SoftwareProfile& profile, PlanOptions* options,
                            std::vector<std::string>* notes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SHARDING_CHOOSE_SHARDING_H_
