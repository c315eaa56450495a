#ifndef PLANCAST_COLLECTIVES_PRICE_H_
#define PLANCAST_COLLECTIVES_PRICE_H_

#include <cstdint>
#include <optional>

#include "cluster/machine.h"
#include "collectives/communicator.h"
#include "collectives/protocol_cost.h"
#include "collectives/traffic.h"

namespace plancast {

// A candidate with its time, before it is rounded to fixed point.
struct PricedTraffic {
  Traffic traffic;
  Protocol protocol = Protocol::kSimple;
  const ProtocolCost* cost = nullptr;  // of the slowest level that it crosses
  double delay_s = 0;
  // Load per byte on each class of link that it uses, overheads included.
  double port = 0, uplink = 0, bridge = 0, nic = 0, spine = 0, between = 0;
  double rate_cap = 0;  // bytes/s, the links' own limits included
  double seconds(int64_t bytes) const { return delay_s + bytes / rate_cap; }
};

// What links and protocols cost in one section of a machine, looked up once per call.
struct LinkCosts {
  LinkCosts(const Machine& all, const ProtocolCosts& costs, int section = 0);
  // Index of one of the links below among the classes of the whole machine.
  int IndexOf(const LinkClass* link) const;

  const Machine& all;
  const Machine& machine;                 // the section
  const ProtocolCosts::ForLink& node;     // inside a node
  const ProtocolCosts::ForLink& network;  // between nodes
  const LinkClass* port = nullptr;
  const LinkClass* uplink = nullptr;  // of PCIe switches
  const LinkClass* bridge = nullptr;
  const LinkClass* nic = nullptr;
  const LinkClass* spine = nullptr;
  const LinkClass* between = nullptr;  // to other sections

 private:
  const int first_link_class_;
};

// Nothing for permute, which is no collective of its own, and on the host (IsOnHost).
std::optional<ProgramKind> ProgramKindOf(CollectiveKind kind);
// What NCCL calls a collective, an algorithm and a protocol; nothing where it has no
// forecast for them.
std::optional<ProgramKind> NcclKindOf(CollectiveKind kind);
std::optional<NcclAlgorithm> NcclAlgorithmOf(Algorithm algorithm);

// The share of a device's links in a mesh that the traffic can use: a message between two takes
// the one link that joins them. (Of other meshes than xGMI that is not said here.)
double MeshShareOf(const Machine& machine, const GroupShape& shape, const Traffic& traffic);

// Nothing where the algorithm or the protocol does not run on these links.
// `bandwidth_scale` multiplies the rates of links inside hosts and NVLink domains.
// `tuners` of the group: nullptr only with costs that are no forecasts.
std::optional<PricedTraffic> Price(const LinkCosts& links, const GroupShape& shape,
                                   const Traffic& traffic, Protocol protocol, CollectiveKind kind,
                                   int64_t bytes, double bandwidth_scale,
                                   const GroupTuners* tuners = nullptr);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PRICE_H_
