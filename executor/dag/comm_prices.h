#ifndef PLANCAST_EXECUTOR_DAG_COMM_PRICES_H_
#define PLANCAST_EXECUTOR_DAG_COMM_PRICES_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "collectives/realise.h"
#include "executor/sharing/fluid.h"

namespace plancast {

// Communications of given members as activities of a Fluid over the machine's
// links, each realised once.
class CommPrices {
 public:
  struct Price {
    RealisedCollective realised;
    int32_t activity_kind = -1;  // of `fluid`, if there is work
  };
  CommPrices(const Machine& machine, Fluid& fluid) : machine_(machine), fluid_(fluid) {}

  // Members ascending; `source` is that of a kSendRecv, else -1. `key` names the
  // members. The reference stays valid.
  absl::StatusOr<const Price*> Of(const std::pair<int64_t, int64_t>& key,
                                  const std::vector<int64_t>& members, CollectiveKind kind,
                                  int64_t bytes, int64_t source);

 private:
  int32_t Resource(int link_class, int64_t instance, int direction);
  void AddLoads(const LinkLoad& load, const std::vector<int64_t>& members, int64_t source,
                std::map<int32_t, int64_t>& loads);

  const Machine& machine_;
  Fluid& fluid_;
  std::map<std::tuple<std::pair<int64_t, int64_t>, CollectiveKind, int64_t>, Price> prices_;
  std::map<std::tuple<int, int64_t, int>, int32_t> resources_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_DAG_COMM_PRICES_H_
