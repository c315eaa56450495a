#ifndef PLANCAST_COLLECTIVES_PROTOCOL_COST_H_
#define PLANCAST_COLLECTIVES_PROTOCOL_COST_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/enum_names.h"
#include "collectives/programs/protocol.h"
#include "graph/collective_kind.h"
#include "proto/collective_cost.pb.h"

namespace plancast {

// kCopy: copy engines, which run only where they are asked for.
enum class Algorithm : uint8_t { kRing, kTree, kNvls, kNvlsTree, kPairwise, kDirect, kCopy };
inline constexpr auto kAlgorithmNames =
    NamesOf<Algorithm>("ring", "tree", "nvls", "nvls-tree", "pairwise", "direct", "copy");
inline constexpr int kNumAlgorithms = kAlgorithmNames.size();
// Those that run on links.
inline constexpr int kNumCollectiveKinds = static_cast<int>(CollectiveKind::kScatter) + 1;

// See proto/collective_cost.proto; seconds.
struct ProtocolCost {
  double base_s = 0, hop_s = 0, fill = 0, efficiency = 1, bridge_efficiency = 1,
         bridge_crowding = 0;
  double local_share = 0, sigma = 0;
  // Of the network: `efficiency` holds for groups of `hosts` and fewer, that of most for
  // `most_hosts` and more. 0: any number is alike.
  int hosts = 0, most_hosts = 0;
  double efficiency_of_most = 1;
  int channels = 0;
  bool forecast = false;  // latency and rate are NCCL's own forecast
  std::string link;       // the link it was fitted on
  std::string source;

  // Between so many hosts.
  double EfficiencyAmong(int64_t group_hosts) const;
};

// The kind whose measured costs one without any has: the same messages, all to or from a root.
constexpr CollectiveKind PricedAs(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kReduce:
      return CollectiveKind::kBroadcast;
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return CollectiveKind::kAllToAll;
    default:
      return kind;
  }
}

// The entries of collectives/data, found by link, algorithm, protocol and kind.
class ProtocolCosts {
 public:
  static absl::StatusOr<ProtocolCosts> Create(const proto::CollectiveCosts& proto);
  // The shipped coefficients.
  static const ProtocolCosts& Shipped();
  // The same algorithms on links as their data sheets have them: every rate nominal,
  // nothing but the links' own latency before it.
  static const ProtocolCosts& Nominal();

  // Of one link; by pointer into the table, which outlives it.
  struct ForLink {
    // What is cheapest runs, whatever NCCL expects.
    bool picks_cheapest = false;
    // nullptr: the algorithm does not run there.
    const ProtocolCost* Find(Algorithm algorithm, Protocol protocol, CollectiveKind kind) const {
      return entry[static_cast<int>(algorithm)][static_cast<int>(protocol)]
                  [static_cast<int>(PricedAs(kind))];
    }
    std::array<std::array<std::array<const ProtocolCost*, kNumCollectiveKinds>, kNumProtocols>,
               kNumAlgorithms>
        entry = {};
  };
  // Links without an entry answer as the default of their kind.
  const ForLink& Of(absl::string_view link) const;

 private:
  std::vector<ProtocolCost> costs_;
  absl::flat_hash_map<std::string, ForLink> links_;
  ForLink none_;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROTOCOL_COST_H_
