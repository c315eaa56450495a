#include "executor/chunks/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"

namespace plancast {
ChunkNetwork ChunkNetwork::OfMachine(const Machine& machine) {
  ChunkNetwork network;
  network.machine_ = &machine;
  for (size_t c = 0; c < machine.link_classes().size(); ++c) {
    network.first_link_.push_back(network.num_links_);
    network.num_links_ += 2 * machine.NumLinkInstances(static_cast<int>(c));
  }
  network.first_link_.push_back(network.num_links_);
  return network;
}

absl::StatusOr<ChunkNetwork> ChunkNetwork::OfWires(int32_t places, int32_t nodes,
                                                   std::vector<Wire> wires) {
  ChunkNetwork network;
  if (places < 1 || nodes < places) {
    return absl::InvalidArgumentError(absl::StrCat("a network of ", nodes, " nodes, ", places,
                                                   " of which send; one at least has to."));
  }
  network.places_ = places;
  network.wires_from_.resize(nodes);
  for (size_t w = 0; w < wires.size(); ++w) {
    const Wire& wire = wires[w];
    if (wire.from < 0 || wire.to < 0 || wire.from >= nodes || wire.to >= nodes ||
        wire.bytes_per_s < 1 || wire.latency_ps < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("wire ", w, " leads from node ", wire.from, " to ", wire.to, " at ",
                       wire.bytes_per_s, " bytes/s with ", wire.latency_ps, " ps; nodes are 0 to ",
                       nodes - 1, ", rates positive and latencies not negative."));
    }
    network.wires_from_[wire.from].push_back(static_cast<int32_t>(w));
  }
  network.num_links_ = static_cast<int64_t>(wires.size());
  network.wires_ = std::move(wires);
  return network;
}

int64_t ChunkNetwork::num_devices() const {
  return machine_ == nullptr ? places_ : machine_->num_devices();
}

int64_t ChunkNetwork::num_places() const {
  if (machine_ == nullptr) return places_;
  return machine_->num_devices() + machine_->num_devices() / machine_->gpus_per_domain();
}

std::pair<int, int64_t> ChunkNetwork::ClassAndInstance(int64_t link) const {
  const auto next = std::upper_bound(first_link_.begin(), first_link_.end(), link);
  const auto link_class = static_cast<int>(next - first_link_.begin()) - 1;
  return {link_class, (link - first_link_[link_class]) / 2};
}

std::string ChunkNetwork::LinkName(int64_t link) const {
  if (machine_ == nullptr) {
    return absl::StrCat("node ", wires_[link].from, " to node ", wires_[link].to);
  }
  const auto [index, instance] = ClassAndInstance(link);
  const LinkClass& link_class = machine_->link_classes()[index];
  const bool of_device = link_class.instances_per_block == link_class.devices_per_block;
  const bool inward = (link - first_link_[index]) % 2 != 0;
  return absl::StrCat(link_class.name, of_device ? " of device " : " ", instance,
                      !link_class.duplex ? ""
                      : inward           ? ", inward"
                                         : ", outward");
}

int64_t ChunkNetwork::LinkBytesPerSecond(int64_t link) const {
  if (machine_ == nullptr) return wires_[link].bytes_per_s;
  const auto [link_class, instance] = ClassAndInstance(link);
  const double rate =
      machine_->link_classes()[link_class].bytes_per_s * machine_->LinkScale(link_class, instance);
  return std::max<int64_t>(1, std::llround(rate));
}

bool ChunkNetwork::DomainsTurn() const {
  if (machine_ == nullptr || !machine_->uniform()) return false;
  if (machine_->spec().topology != "nvswitch" && machine_->spec().topology != "nvl72") return false;
  for (const LinkClass& link : machine_->link_classes()) {
    if (link.reaches == Level::kDevice) continue;
    // One link for each device.
    if (link.devices_per_block != link.instances_per_block) return false;
  }
  return true;
}

int64_t ChunkNetwork::TurnedToFirst(int64_t link) const {
  const int link_class = ClassAndInstance(link).first;
  const int64_t inside = link - first_link_[link_class];
  const int64_t turned = inside / 2 / domain_size() * domain_size();
  return first_link_[link_class] + 2 * turned + inside % 2;
}

absl::StatusOr<Route> ChunkNetwork::RouteOf(int64_t from, int64_t to) const {
  if (from < 0 || to < 0 || from >= num_places() || to >= num_places() || from == to) {
    return absl::InvalidArgumentError(absl::StrCat("no route from place ", from, " to place ", to,
                                                   "; the network has places 0 to ",
                                                   num_places() - 1, "."));
  }
  if (machine_ == nullptr) return WireRoute(from, to);
  const int64_t devices = machine_->num_devices();
  const auto domain_of = [&](int64_t place) {
    return place < devices ? machine_->DomainOf(place) : place - devices;
  };
  const bool to_switch = from >= devices || to >= devices;
  if ((to_switch && (domain_of(from) != domain_of(to) || machine_->intra_class() < 0)) ||
      (domain_of(from) != domain_of(to) && machine_->FindLinkClass(LinkKind::kNic) < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("no route from place ", from, " to place ", to,
                                                   " of `", machine_->spec().name,
                                                   "`: it has no links between them."));
  }
  return MachineRoute(from, to);
}

absl::StatusOr<int64_t> ChunkNetwork::SwitchesOf(int64_t device) const {
  if (machine_ == nullptr ||
      (machine_->spec().topology != "nvswitch" && machine_->spec().topology != "nvl72")) {
    return absl::InvalidArgumentError(
        "reductions in switches need a machine with NVLink switches. Choose another algorithm.");
  }
  return machine_->num_devices() + machine_->DomainOf(device);
}

// By the link of `link_class` that serves a device, towards the device or away.
void ChunkNetwork::Cross(int link_class, int64_t device, bool in, LinkPart part,
                         Route& route) const {
  const bool duplex = machine_->link_classes()[link_class].duplex;
  const int64_t instance = machine_->LinkInstance(link_class, device);
  route.hops.push_back({first_link_[link_class] + 2 * instance + (in && duplex ? 1 : 0), part});
}

Route ChunkNetwork::MachineRoute(int64_t from, int64_t to) const {
  const Machine& machine = *machine_;
  const int64_t devices = machine.num_devices();
  const int intra = machine.intra_class();
  const auto latency = [&](int link_class) {
    return RoundToPicoseconds(machine.link_classes()[link_class].latency_s);
  };
  Route route;
  if (from >= devices || to >= devices) {
    Cross(intra, from >= devices ? to : from, from >= devices, LinkPart::kNode, route);
    route.latency_ps = latency(intra) / 2;
    route.to_switch = true;
    return route;
  }
  const int uplink = machine.FindLinkClass(LinkKind::kPcieSwitch);
  if (machine.DomainOf(from) == machine.DomainOf(to)) {
    Cross(intra, from, false, LinkPart::kNode, route);
    if (uplink >= 0 && machine.LinkInstance(uplink, from) != machine.LinkInstance(uplink, to)) {
      Cross(uplink, from, false, LinkPart::kNode, route);
      // A message crosses the bridge once, whichever way.
      Cross(machine.FindLinkClass(LinkKind::kHostBridge), from, false, LinkPart::kBridge, route);
      Cross(uplink, to, true, LinkPart::kNode, route);
    }
    Cross(intra, to, true, LinkPart::kNode, route);
    route.latency_ps = latency(intra);
    return route;
  }

  const int nic = machine.FindLinkClass(LinkKind::kNic);
  const int spine = machine.FindLinkClass(LinkKind::kSpine);
  route.network = true;
  route.latency_ps = latency(nic);
  const bool pcie = intra >= 0 && machine.link_classes()[intra].kind == LinkKind::kPcie;
  const bool above_switches = uplink >= 0 && machine.link_classes()[nic].instances_per_block <
                                                 machine.link_classes()[uplink].instances_per_block;
  const auto rail = [&](int64_t device) {
    return machine.LinkInstance(spine, device) % machine.link_classes()[spine].instances_per_block;
  };
  int64_t leaves = from;  // the device next to the interface
  bool spine_crossed = false;
  if (spine >= 0) {
    if (rail(from) != rail(to) && !pcie && intra >= 0) {
      const int64_t g = machine.spec().gpus_per_host;
      leaves = machine.HostOf(from) * g + to % g;
      Cross(intra, from, false, LinkPart::kNode, route);
      Cross(intra, leaves, true, LinkPart::kNode, route);
    }
    spine_crossed = machine.LinkInstance(spine, leaves) != machine.LinkInstance(spine, to);
  }
  if (pcie) Cross(intra, from, false, LinkPart::kNetwork, route);
  if (above_switches) Cross(uplink, from, false, LinkPart::kNode, route);
  Cross(nic, leaves, false, LinkPart::kNetwork, route);
  if (spine_crossed) {
    Cross(spine, leaves, false, LinkPart::kNetwork, route);
    Cross(spine, to, true, LinkPart::kNetwork, route);
    route.latency_ps += latency(spine);
  }
  Cross(nic, to, true, LinkPart::kNetwork, route);
  if (above_switches) Cross(uplink, to, true, LinkPart::kNode, route);
  if (pcie) Cross(intra, to, true, LinkPart::kNetwork, route);
  return route;
}

absl::StatusOr<Route> ChunkNetwork::WireRoute(int64_t from, int64_t to) const {
  // Level by level; of equally many hops the least latency.
  struct Best {
    int32_t hops = -1, wire = -1;
    int64_t latency_ps = 0;
  };
  std::vector<Best> best(wires_from_.size());
  best[from].hops = 0;
  std::vector<int64_t> level = {from};
  while (!level.empty() && best[to].hops < 0) {
    std::vector<int64_t> next;
    for (const int64_t node : level) {
      if (node != from && node < places_) continue;  // places do not switch
      for (const int32_t w : wires_from_[node]) {
        const Wire& wire = wires_[w];
        const Best offer{best[node].hops + 1, w, best[node].latency_ps + wire.latency_ps};
        Best& old = best[wire.to];
        if (old.hops < 0) next.push_back(wire.to);
        const bool better =
            old.hops < 0 || (old.hops == offer.hops && offer.latency_ps < old.latency_ps);
        if (better) old = offer;
      }
    }
    level = std::move(next);
  }
  if (best[to].hops < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no wires lead from place ", from, " to place ", to, "."));
  }
  Route route;
  route.latency_ps = best[to].latency_ps;
  for (int64_t node = to; node != from; node = wires_[best[node].wire].from) {
    const Wire& wire = wires_[best[node].wire];
    route.hops.push_back({best[node].wire, wire.part});
    route.network = route.network || wire.part == LinkPart::kNetwork;
  }
  std::reverse(route.hops.begin(), route.hops.end());
  return route;
}

int64_t HopBeyondLink(const Machine& machine, int link_class, double hop_us) {
  const double link_us = link_class < 0 ? 0 : machine.link_classes()[link_class].latency_s * 1e6;
  return std::llround(std::max(0.0, hop_us - link_us) * 1e6);
}

}  // namespace plancast
