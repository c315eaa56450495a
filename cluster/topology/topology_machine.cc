#include "cluster/topology/topology_machine.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/machine_proto.h"
#include "cluster/topology/gpu_element.h"
#include "cluster/topology/host_shapes.h"
#include "cluster/topology/link_rates.h"
#include "cluster/topology/paths.h"
#include "cluster/topology/topology.h"

namespace plancast {
namespace {

// What a file says of its GPUs and network devices, beyond what NCCL uses.
struct Facts {
  std::map<std::pair<int, std::string>, int> gpus;  // capability and device id: how many
  std::map<int, int> nvlinks;                       // links of a GPU: how many GPUs
  const proto::AmdGpu* amd = nullptr;
  bool to_switch = false, to_gpu = false;
  std::map<double, int> pcie;  // nominal GB/s of GPUs' links
  std::string net_name;
};

double NominalPcie(const std::string& speed, int width) {
  double lane = 1;  // GB/s
  for (double transfers : {2.5, 5.0, 8.0, 16.0, 32.0, 64.0}) {
    if (absl::StartsWith(speed, absl::StrCat(transfers))) lane = transfers / 8;
  }
  return lane * (width == 0 ? 16 : width);
}

void Collect(const SystemElement& element, Facts& facts) {
  for (const SystemElement& child : element.children) {
    Collect(child, facts);
    if (child.name == "net" && facts.net_name.empty() && child.Has("name")) {
      facts.net_name = *child.Find("name");
    }
    if (child.name != "gpu" || !child.Has("rank")) continue;
    const std::string* device = element.Find("device");
    ++facts.gpus[{CapabilityOf(child).value_or(0), device == nullptr ? "" : *device}];
    if (const std::string* gcn = child.Find("gcn")) facts.amd = &AmdGpuOf(*gcn);
    int links = 0;
    for (const SystemElement& link : child.children) {
      if (link.name != "nvlink" && link.name != "xgmi") continue;
      links += static_cast<int>(link.Integer("count", 1).value_or(1));
      const std::string* target = link.Find("tclass");
      const bool gpu = target != nullptr && IsGpuClass(*target);
      facts.to_gpu = facts.to_gpu || gpu;
      facts.to_switch = facts.to_switch || !gpu;
    }
    ++facts.nvlinks[links];
    const std::string* speed = element.Find("link_speed");
    const int width = static_cast<int>(element.Integer("link_width", 16).value_or(16));
    ++facts.pcie[NominalPcie(speed == nullptr ? "" : *speed, width)];
  }
}

template <typename Map>
auto MostCommon(const Map& counts) -> decltype(counts.begin()->first) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// Files made by hand may have the id of another GPU.
const proto::KnownGpu* ByDevice(const std::string& device, int capability) {
  for (const proto::KnownGpu& gpu : HostShapes().gpu()) {
    if (gpu.compute_capability() != capability) continue;
    for (const std::string& id : gpu.pci_device()) {
      if (id == device) return &gpu;
    }
  }
  return nullptr;
}

std::string GuessFabric(const std::string& net) {
  for (absl::string_view prefix : {"mlx", "ib", "hfi", "bnxt_re", "roce"}) {
    if (!absl::StartsWith(net, prefix)) continue;
    return prefix == "hfi"                           ? "omnipath"
           : prefix == "bnxt_re" || prefix == "roce" ? "roce"
                                                     : "infiniband";
  }
  return absl::StartsWith(net, "rdmap") || absl::StartsWith(net, "efa") ? "efa" : "ethernet";
}

// GPUs below one lowest PCIe switch, at most.
int GpusOfSwitch(const Topology& topology) {
  int most = 1;
  for (int pci : topology.Of(NodeKind::kPci)) {
    int below = 0;
    for (int link : topology.node(pci).links) {
      const NodeKind kind = topology.node(topology.links()[link].to).kind;
      below += kind == NodeKind::kDevice || kind == NodeKind::kGpu;
    }
    most = std::max(most, below);
  }
  return most;
}

void SetLinks(const Facts& facts, const Topology& topology, int capability,
              proto::Machine& machine) {
  const double pcie = MostCommon(facts.pcie);
  machine.set_pcie_gb_per_s(pcie);
  const int links = MostCommon(facts.nvlinks);
  if (links == 0) {
    const TopologyPaths paths(topology);
    const bool one_tree =
        topology.Count(NodeKind::kGpu) == 1 || paths.GreatestType(NodeKind::kGpu) <= PathType::kPxb;
    machine.set_topology(one_tree ? "pcie-switch" : "host-bridge");
    machine.set_intra_link(pcie > 65   ? "pcie6"
                           : pcie > 33 ? "pcie5"
                           : pcie > 17 ? "pcie4"
                                       : "pcie3");
    machine.set_intra_gb_per_s(pcie);
    machine.set_gpus_per_switch(GpusOfSwitch(topology));
    return;
  }
  const bool fifth = capability >= 100;
  machine.set_intra_link(facts.amd != nullptr ? "xgmi"
                         : fifth              ? "nvlink5"
                         : capability >= 90   ? "nvlink4"
                         : capability >= 80   ? "nvlink3"
                                              : "nvlink2");
  machine.set_intra_gb_per_s(links * (facts.amd != nullptr ? facts.amd->rated_gb_per_s()
                                      : fifth              ? 50.0
                                                           : 25.0));
  machine.set_topology(topology.hosts() > 1 ? "nvl72" : facts.to_switch ? "nvswitch" : "cube-mesh");
}

// The fastest network devices, ports of one card on one line being one.
void SetNics(const Topology& topology, proto::Machine& machine,
             std::vector<std::string>& assumptions) {
  float fastest = 0;
  for (int net : topology.Of(NodeKind::kNet)) {
    fastest = std::max(fastest, topology.node(net).gb_per_s);
  }
  std::set<std::pair<uint64_t, int>> ports;
  int slower = 0;
  for (int net : topology.Of(NodeKind::kNet)) {
    const TopologyNode& node = topology.node(net);
    if (node.host != 0) continue;
    if (node.gb_per_s < fastest) {
      ++slower;
    } else {
      ports.emplace(node.asic, node.port);
    }
  }
  machine.set_nics_per_host(static_cast<int>(std::max<size_t>(1, ports.size())));
  machine.set_nic_gbit_per_s(fastest * 8);
  if (slower > 0) {
    assumptions.push_back(absl::StrCat(slower, " network devices slower than ", fastest * 8,
                                       " Gbit/s carry no traffic of GPUs."));
  }
}

}  // namespace

absl::StatusOr<TopologyMachine> MachineOf(const SystemElement& system, int64_t count,
                                          const std::string& fabric, const std::string& name) {
  ASSIGN_OR_RETURN(const Topology topology, Topology::Create(system, kLatestNccl));
  if (count < 1 || count > 1'000'000) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " hosts; it has to be between 1 and 1000000."));
  }
  Facts facts;
  Collect(system, facts);
  std::vector<std::string> assumptions;
  const auto [capability, device] = MostCommon(facts.gpus);
  const int links = MostCommon(facts.nvlinks);
  const proto::KnownGpu* known = ByDevice(device, capability);
  if (known == nullptr && facts.amd != nullptr) {
    known = FindKnownGpu(facts.amd->gpu());
    assumptions.push_back(absl::StrCat("The GPUs are ", known->name(), ", by their generation."));
  } else if (known == nullptr) {
    known = &NearestKnownGpu(capability, links);
    assumptions.push_back(absl::StrCat("The GPUs are ", known->name(),
                                       ", the nearest to compute capability ", capability, " with ",
                                       links, " NVLinks."));
  } else {
    assumptions.push_back(
        absl::StrCat("The GPUs are ", known->name(), ", by device id ", device, "."));
  }
  if (facts.gpus.size() > 1) assumptions.push_back("All GPUs are alike, though the file differs.");

  proto::Machine machine;
  machine.set_name(name);
  machine.mutable_gpu()->set_like(known->name());
  const int gpus = topology.Count(NodeKind::kGpu);
  if (gpus % topology.hosts() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(gpus, " GPUs on ", topology.hosts(), " hosts; a machine's hosts are alike."));
  }
  machine.set_hosts(static_cast<int32_t>(count * topology.hosts()));
  machine.set_gpus_per_host(gpus / topology.hosts());
  machine.set_hosts_per_domain(topology.hosts());
  SetLinks(facts, topology, capability, machine);
  if (topology.Count(NodeKind::kNet) > 0) {
    SetNics(topology, machine, assumptions);
  } else {
    machine.set_nics_per_host(1);
  }
  machine.set_fabric(fabric.empty() ? GuessFabric(facts.net_name) : fabric);
  if (fabric.empty() && topology.Count(NodeKind::kNet) > 0) {
    assumptions.push_back(
        absl::StrCat("The fabric is ", machine.fabric(), ", by the name `", facts.net_name, "`."));
  }
  machine.set_source("NCCL topology file");
  ASSIGN_OR_RETURN(Machine made, MachineFromProto(machine));
  return TopologyMachine{std::move(made), std::move(assumptions)};
}

}  // namespace plancast
