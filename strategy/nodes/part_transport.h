#ifndef PLANCAST_STRATEGY_NODES_PART_TRANSPORT_H_
#define PLANCAST_STRATEGY_NODES_PART_TRANSPORT_H_

#include <cstdint>
#include <optional>

#include "base/enum_names.h"
#include "base/memo_key.h"

namespace plancast {

// How the parts of what a product reads, or of what it makes, move beside it.
struct PartTransport {
  enum class Way : uint8_t {
    kWhole,       // not in parts: one collective before the product, or behind it
    kCollective,  // the collective, cut in pieces
    kRing,        // from neighbour to neighbour; of a sum, with what each adds to it
    kPeers,       // from who has a part to who needs it; a sum is taken when all have come
  };
  Way way = Way::kWhole;
  int64_t pieces = 0;         // of kCollective; 0: one for each rank, as of the others
  bool copy_engines = false;  // they send; else kernels do
  // A device's own part is copied to where others find it, before anything is sent.
  bool staged = false;
  // Of kPeers: the kernel that takes the sum runs at this share of what memory lets others.
  double sum_rate = 1;
  // Not in a forward pass without autograd, as the first of what is run again has.
  bool only_with_grad = false;
  bool spared = false;  // products beside kCollective are launched on the SMs that it leaves

  bool whole() const { return way == Way::kWhole; }
  // Parts are messages between ranks, not collectives.
  bool sends() const { return way == Way::kRing || way == Way::kPeers; }
  PLANCAST_KEY_FIELDS(PartTransport, way, pieces, copy_engines, staged, sum_rate, only_with_grad,
                      spared)
};
inline constexpr auto kTransportWayNames =
    NamesOf<PartTransport::Way>("whole", "collective", "ring", "peers");

// What `overlap=tp` does with the collectives of tensor parallelism: an all-gather and the product
// that reads it, a product and the reduce-scatter of what it makes; of gradients, the same around
// products that make the gradient of an input.
struct TpTransports {
  PartTransport gather = {PartTransport::Way::kRing};
  PartTransport scatter = {PartTransport::Way::kCollective};
  PartTransport gradient_gather = {PartTransport::Way::kRing};
  PartTransport gradient_scatter;
  std::optional<PartTransport> quantized_scatter;  // `scatter` where products run in 8 or 4 bits
  // On which products of parts run in turn: with more than one, they fill each other's last waves.
  int64_t streams = 1;
  PLANCAST_KEY_FIELDS(TpTransports, gather, scatter, gradient_gather, gradient_scatter,
                      quantized_scatter, streams)
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_PART_TRANSPORT_H_
