#include "executor/dag/comm_prices.h"

#include <set>

#include "base/status_macros.h"
#include "executor/fold/link_directions.h"

namespace plancast {

int32_t CommPrices::Resource(int link_class, int64_t instance, int direction) {
  const auto [known, added] = resources_.try_emplace({link_class, instance, direction}, 0);
  if (added) {
    known->second = fluid_.AddResource(
        LinkCapacity(machine_, link_class, machine_.LinkScale(link_class, instance)));
  }
  return known->second;
}

// A collective loads both directions of every link that serves a member; a message
// those out of its source and into its destination.
void CommPrices::AddLoads(const LinkLoad& load, const std::vector<int64_t>& members, int64_t source,
                          std::map<int32_t, int64_t>& loads) {
  const LinkDirections directions = DirectionsOf(machine_, load.link_class, /*one_way=*/true);
  std::set<std::pair<int64_t, int>> reached;
  for (const int64_t member : members) {
    const int64_t instance = machine_.LinkInstance(load.link_class, member);
    for (int direction = 0; direction < 2; ++direction) {
      if (source >= 0 && (member == source) != (direction == 0)) continue;
      if (!reached.emplace(instance, direction).second) continue;
      loads[Resource(load.link_class, instance, directions.separate ? direction : 0)] +=
          load.coefficient_q20;
    }
  }
}

absl::StatusOr<const CommPrices::Price*> CommPrices::Of(const std::pair<int64_t, int64_t>& key,
                                                        const std::vector<int64_t>& members,
                                                        CollectiveKind kind, int64_t bytes,
                                                        int64_t source) {
  const auto [known, added] = prices_.try_emplace({key, kind, bytes});
  Price& price = known->second;
  if (!added) return &price;
  ASSIGN_OR_RETURN(price.realised, Realise(machine_, GroupPattern::Of(members), kind, bytes));
  if (price.realised.work_bytes == 0) return &price;
  std::map<int32_t, int64_t> loads;
  for (const LinkLoad& load : price.realised.loads) AddLoads(load, members, source, loads);
  std::vector<Fluid::Use> uses;
  for (const auto& [resource, coefficient] : loads) uses.push_back({resource, coefficient});
  price.activity_kind = fluid_.AddKind(price.realised.rate_cap_bytes_per_s, 1, uses);
  return &price;
}

}  // namespace plancast
