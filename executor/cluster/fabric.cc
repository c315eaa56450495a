#include "executor/cluster/fabric.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/mixed_machine.h"

namespace plancast {
namespace {

constexpr int64_t kMostLinks = int64_t{1} << 24;

}  // namespace

absl::StatusOr<Fabric> Fabric::Create(Spec spec) {
  if (spec.hosts < 1 || spec.gpus_per_host < 1 || spec.nics_per_host < 1 ||
      spec.hosts_per_domain < 1) {
    return absl::InvalidArgumentError("a fabric has at least one host, GPU and interface.");
  }
  if (spec.nic_bytes_per_s < 1 && spec.hosts > spec.hosts_per_domain) {
    return absl::InvalidArgumentError(
        "the hosts have no network between them: the machine says no rate of its interfaces. "
        "Say `nic_gbit_per_s`.");
  }
  spec.nic_bytes_per_s = std::max<int64_t>(spec.nic_bytes_per_s, 1);
  Fabric fabric;
  fabric.capacities_.assign(spec.hosts * spec.nics_per_host * 2, spec.nic_bytes_per_s);
  int64_t below = spec.hosts;
  std::vector<int32_t> node_of_host(spec.hosts);
  for (int64_t h = 0; h < spec.hosts; ++h) node_of_host[h] = static_cast<int32_t>(h);
  for (const Tier& tier : spec.tiers) {
    if (static_cast<int64_t>(tier.node_of.size()) != below) {
      return absl::InvalidArgumentError(absl::StrCat("tier `", tier.name, "` places ",
                                                     tier.node_of.size(), " nodes and there are ",
                                                     below, " below it."));
    }
    if (tier.width < 1 || tier.width > 4096 || tier.bytes_per_s < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("tier `", tier.name, "` has ", tier.width, " uplinks of ", tier.bytes_per_s,
                       " bytes a second; give 1 to 4,096 of some rate."));
    }
    int32_t nodes = 0;
    for (int32_t node : tier.node_of) {
      if (node < 0 || node >= below) {
        return absl::InvalidArgumentError(
            absl::StrCat("tier `", tier.name, "` has a node ", node, "; count them from 0."));
      }
      nodes = std::max(nodes, node + 1);
    }
    fabric.first_link_.push_back(static_cast<int32_t>(fabric.capacities_.size()));
    fabric.num_nodes_.push_back(nodes);
    const int64_t rails = tier.by_rail ? spec.nics_per_host : 1;
    const int64_t links = static_cast<int64_t>(fabric.capacities_.size()) +
                          int64_t{nodes} * rails * tier.width * kStride;
    if (links > kMostLinks) {
      return absl::InvalidArgumentError(absl::StrCat("the fabric has ", links, " links; at most ",
                                                     kMostLinks, " are simulated."));
    }
    fabric.capacities_.resize(links, tier.bytes_per_s);
    for (int32_t& node : node_of_host) node = tier.node_of[node];
    fabric.node_of_host_.push_back(node_of_host);
    below = nodes;
  }
  fabric.spec_ = std::move(spec);
  return fabric;
}

absl::StatusOr<Fabric> Fabric::Of(const Machine& machine, int32_t width) {
  RETURN_IF_ERROR(CheckNotMixed(machine, "A cluster of jobs"));
  const Machine::Spec& of = machine.spec();
  Spec spec;
  spec.hosts = of.hosts;
  spec.gpus_per_host = of.gpus_per_host;
  spec.nics_per_host = std::min(of.nics_per_host, of.gpus_per_host);
  spec.nic_bytes_per_s = std::llround(of.nic_bytes_per_s * static_cast<double>(of.nics_per_host) /
                                      static_cast<double>(spec.nics_per_host));
  spec.hosts_per_domain = machine.hosts_per_domain();
  spec.inside_bytes_per_s = std::llround(of.intra_bytes_per_s);
  const int spine = machine.FindLinkClass(LinkKind::kSpine);
  if (spine >= 0) {
    const LinkClass& link = machine.link_classes()[spine];
    Tier tier;
    tier.name = "pod";
    const int64_t pod = machine.hosts_per_pod() > 0 ? machine.hosts_per_pod() : spec.hosts;
    for (int64_t h = 0; h < spec.hosts; ++h) tier.node_of.push_back(static_cast<int32_t>(h / pod));
    tier.by_rail = of.rail_optimized;
    tier.width = width;
    // Of the machine's instances, one for each rail or for each pod.
    const int64_t instances = tier.by_rail ? std::min(of.nics_per_host, of.gpus_per_host) : 1;
    tier.bytes_per_s =
        std::llround(link.bytes_per_s * static_cast<double>(link.instances_per_block) /
                     static_cast<double>(instances * width));
    spec.tiers.push_back(std::move(tier));
  }
  return Create(std::move(spec));
}

int32_t Fabric::Uplink(int tier, int32_t node, int32_t rail, bool down) const {
  const Tier& of = spec_.tiers[tier];
  const int64_t switches = of.by_rail ? spec_.nics_per_host : 1;
  const int64_t bundle = int64_t{node} * switches + (of.by_rail ? rail : 0);
  return static_cast<int32_t>(first_link_[tier] + bundle * of.width * kStride + (down ? 1 : 0));
}

std::string Fabric::LinkName(int32_t link) const {
  const char* way = link % 2 == 0 ? "out" : "in";
  int tier = static_cast<int>(spec_.tiers.size()) - 1;
  while (tier >= 0 && link < first_link_[tier]) --tier;
  if (tier < 0) {
    const int64_t nic = link / 2;
    return absl::StrCat("nic ", nic % spec_.nics_per_host, " of host ", nic / spec_.nics_per_host,
                        ", ", way);
  }
  const Tier& of = spec_.tiers[tier];
  const int64_t place = (link - first_link_[tier]) / kStride;
  const int64_t switches = of.by_rail ? spec_.nics_per_host : 1;
  const int64_t bundle = place / of.width;
  std::string name =
      absl::StrCat("uplink ", place % of.width, " of ", of.name, " ", bundle / switches);
  if (of.by_rail) absl::StrAppend(&name, " rail ", bundle % switches);
  return absl::StrCat(name, ", ", way);
}

std::vector<FabricFlow> Fabric::RingOf(absl::Span<const int64_t> gpus, int64_t* per_hop) const {
  // Per domain, the interfaces next to its members: (host, interface).
  std::map<int64_t, std::set<std::pair<int64_t, int64_t>>> nics;
  for (int64_t gpu : gpus) {
    const int64_t host = gpu / spec_.gpus_per_host, local = gpu % spec_.gpus_per_host;
    nics[host / spec_.hosts_per_domain].emplace(host,
                                                local * spec_.nics_per_host / spec_.gpus_per_host);
  }
  std::vector<FabricFlow> flows;
  *per_hop = 0;
  if (nics.size() < 2) return flows;
  size_t fewest = nics.begin()->second.size();
  for (const auto& [domain, of] : nics) fewest = std::min(fewest, of.size());
  *per_hop = static_cast<int64_t>(fewest);
  for (auto here = nics.begin(); here != nics.end(); ++here) {
    auto next = std::next(here) == nics.end() ? nics.begin() : std::next(here);
    auto from = here->second.begin();
    auto to = next->second.begin();
    for (size_t r = 0; r < fewest; ++r, ++from, ++to) {
      flows.push_back({static_cast<int32_t>(from->first), static_cast<int32_t>(from->second),
                       static_cast<int32_t>(to->first), static_cast<int32_t>(to->second)});
    }
  }
  return flows;
}

void Fabric::Route(const FabricFlow& flow, const Choose& choose,
                   std::vector<int32_t>* links) const {
  links->push_back(Nic(flow.from_host, flow.from_nic, false));
  for (size_t t = 0; t < spec_.tiers.size(); ++t) {
    const Tier& tier = spec_.tiers[t];
    const int tier_index = static_cast<int>(t);
    const int32_t from = NodeOf(tier_index, flow.from_host), to = NodeOf(tier_index, flow.to_host);
    if (from == to && (!tier.by_rail || flow.from_nic == flow.to_nic)) break;
    const int32_t up = Uplink(tier_index, from, flow.from_nic, false);
    const int32_t down = Uplink(tier_index, to, flow.to_nic, true);
    const int32_t number = choose(flow, tier_index, up, down, tier.width);
    links->push_back(up + number * kStride);
    links->push_back(down + number * kStride);
  }
  links->push_back(Nic(flow.to_host, flow.to_nic, true));
}

}  // namespace plancast
