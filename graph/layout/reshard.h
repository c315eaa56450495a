#ifndef PLANCAST_GRAPH_LAYOUT_RESHARD_H_
#define PLANCAST_GRAPH_LAYOUT_RESHARD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/enum_names.h"
#include "graph/layout/layout.h"
#include "graph/layout/pair_transfers.h"
#include "graph/layout/relayout.h"

namespace plancast {

// Three ways to bring a tensor of E elements from one mesh to another, where each tile of the
// target is held by n devices (Zhuang et al. 2023, arXiv 2211.05322). Each device of the target
// receives exactly its tile in all of them; what differs is how much crosses from mesh to mesh. If
// shards divide evenly and the meshes share no device:
//
//  kSendReceive    n E: every device receives its tile from the source.
//  kScatterGather  n E / g: a device receives 1 / g of its tile; then g devices with copies of the
//                  tile gather the rest from one another: Megatron-LM's scatter-gather (Narayanan
//                  et al. 2021, section 4.1). Over the innermost axes it is Alpa's local
//                  all-gather, which stays inside a host; g = n is the global one.
//  kBroadcast      E: one device of each tile receives a piece and passes it on, chunk by chunk
//                  while it still comes, along a chain of the others.
enum class ReshardStrategy : uint8_t { kSendReceive, kScatterGather, kBroadcast };
inline constexpr auto kReshardStrategyNames =
    NamesOf<ReshardStrategy>("send_receive", "scatter_gather", "broadcast");

struct ReshardProblem {
  std::vector<int64_t> shape;
  ReshardSide source, target;
};

// Elements that a device sends and receives.
struct ReshardTraffic {
  int64_t sent = 0, received = 0;
};

// Structure, no time: collectives on the source's mesh, messages, collectives on the target's.
struct ReshardProgram {
  ReshardStrategy strategy = ReshardStrategy::kSendReceive;
  ReshardProblem problem;  // its source is what `before` leaves
  // What reduces partial values.
  std::vector<RelayoutStep> before;
  PairTransfers transfers;
  // At most one: an all_gather of tiles, or a broadcast. `elements` is the largest tile, `received`
  // what a device gets in it at most. The broadcast of a tile is one of each of its pieces, each
  // from the device that has received it, and goes on while the messages come.
  std::vector<RelayoutStep> after;

  // What goes from mesh to mesh.
  int64_t crossing() const { return transfers.elements(); }
  // What a device of the target receives in messages and in `after`, and sends in that, as rings
  // and chains do: to the next place along the axes what that one has not from elsewhere.
  ReshardTraffic TargetTraffic(int64_t device) const;

  // Lines such as
  //   scatter_gather(tp)
  //     all_reduce(tp) 65536                                     before
  //     16 messages, 65536 elements
  //     devices 0..7 send 2 of 4096
  //     devices 0..15 receive 1 of 4096
  //     all_gather(tp) 32768                                     after
  std::string DebugString() const;
};

// Every program for the problem: send_receive, scatter_gather over the innermost one, two, ... of
// the axes along which the target replicates, broadcast. The last two only where the target holds
// copies and no device of it has a part of its tile already as a device of the source. Errors as
// those of PairTransfers::Plan.
absl::StatusOr<std::vector<ReshardProgram>> PlanReshards(const ReshardProblem& problem);

// The programs that bring the gradient of the tensor back, from the target of `forward`, which
// holds it in the layout `gradient`, to its source. Partial values are reduced before: by an
// all-reduce, and where that moves fewer bytes to shards. kInvalidArgument also if `gradient` has
// halos, whose values would have to be added up.
absl::StatusOr<std::vector<ReshardProgram>> PlanGradientReshards(const ReshardProblem& forward,
                                                                 const Layout& gradient);

// What the parts of a program take, in one unit.
struct ReshardPrices {
  std::function<double(const PairTransfers& transfers)> transfers;
  std::function<double(const DeviceMesh& mesh, const RelayoutStep& collective)> collective;
};

// The time of the busiest device if each sends, and receives, one message at a time. Walks the
// messages. Devices are numbered as in their meshes.
double BusiestDevice(const PairTransfers& transfers,
                     const std::function<double(const Transfer&)>& message);

// Parts follow one another, except that a broadcast goes on beside the messages: the longer of the
// two counts.
double PriceOf(const ReshardProgram& program, const ReshardPrices& prices);

// The index of the cheapest program. Among equals the one that crosses with fewer elements, then
// with fewer messages, then the earlier one. kInvalidArgument: no program has a finite price.
absl::StatusOr<int> CheapestReshard(const std::vector<ReshardProgram>& programs,
                                    const ReshardPrices& prices);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_RESHARD_H_
