#include "cluster/topology/topology_builder.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/topology/gpu_element.h"
#include "cluster/topology/link_rates.h"

namespace plancast {
namespace {

constexpr int kMaxNodes = 1024;
constexpr int kMaxCpus = 256;  // each is linked to each
constexpr int kMaxGpus = 144;  // the search recurses once for each

// What an address of the PCI tree is, by the class that the device reports.
NodeKind KindOfClass(absl::string_view pci_class) {
  if (absl::StartsWith(pci_class, "0x068000")) return NodeKind::kNvs;
  if (absl::StartsWith(pci_class, "0x068001")) return NodeKind::kCpu;
  if (IsGpuClass(pci_class)) return NodeKind::kGpu;
  if (absl::StartsWith(pci_class, "0x02")) return NodeKind::kNic;
  return NodeKind::kPci;
}

uint64_t HexOr(const std::string* text, uint64_t fallback) {
  uint64_t value = 0;
  if (text == nullptr) return fallback;
  absl::string_view digits = *text;
  if (absl::StartsWith(digits, "0x")) digits.remove_prefix(2);
  return absl::SimpleHexAtoi(digits, &value) ? value : fallback;
}

uint64_t DeviceIds(const SystemElement& pci) {
  return HexOr(pci.Find("vendor"), 0) << 48 | HexOr(pci.Find("device"), 0) << 32 |
         HexOr(pci.Find("subsystem_vendor"), 0) << 16 | HexOr(pci.Find("subsystem_device"), 0);
}

// NCCL reads the links of GPUs and switches in depth-first order of the whole tree.
absl::StatusOr<int64_t> BusId(const SystemElement& element, absl::string_view key) {
  ASSIGN_OR_RETURN(const std::string text, element.Text(key));
  int64_t id = 0;
  if (ParseBusId(text, &id)) return id;
  return absl::InvalidArgumentError(absl::StrCat(element.Place(), ": ", key, "=\"", text,
                                                 "\" is no PCI address such as `0000:1a:00.0`."));
}

absl::StatusOr<int> Int(const SystemElement& element, absl::string_view key, int64_t fallback) {
  ASSIGN_OR_RETURN(const int64_t value, element.Integer(key, fallback));
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(element.Place(), ": ", key, "=\"", value, "\" is too large."));
  }
  return static_cast<int>(value);
}

absl::StatusOr<int> NeededInt(const SystemElement& element, absl::string_view key) {
  RETURN_IF_ERROR(element.Text(key).status());
  return Int(element, key, 0);
}

}  // namespace

bool ParseBusId(absl::string_view text, int64_t* id) {
  std::string digits;
  for (char c : text) {
    if (c == ':' || c == '.') continue;
    digits.push_back(c);
  }
  uint64_t value = 0;
  if (digits.size() > 15 || !absl::SimpleHexAtoi(digits, &value)) return false;
  *id = static_cast<int64_t>(value);
  return true;
}

TopologyBuilder::TopologyBuilder(NcclVersion version) : version_(version) {}

int TopologyBuilder::AddNode(NodeKind kind, int64_t id, int host) {
  TopologyNode node;
  node.kind = kind;
  node.id = id;
  node.host = host;
  nodes_.push_back(node);
  links_.emplace_back();
  removed_.push_back(false);
  const int index = static_cast<int>(nodes_.size()) - 1;
  // Until 2.28 a GPU had a link to itself, walked before all others.
  if (kind == NodeKind::kGpu && version_ != NcclVersion::k2_30) {
    links_[index].push_back({LinkType::kLoc, LocalRate(version_), index});
  }
  return index;
}

int TopologyBuilder::Find(NodeKind kind, int64_t id, int host) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind == kind && nodes_[i].id == id && nodes_[i].host == host && !removed_[i]) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Links to one node add up; a node's fastest links come first.
void TopologyBuilder::Connect(int from, int to, LinkType type, float gb_per_s) {
  std::vector<Link>& links = links_[from];
  size_t at = 0;
  while (at < links.size() && !(links[at].to == to && links[at].type == type)) ++at;
  if (at == links.size()) links.push_back({type, 0, to});
  links[at].gb_per_s += gb_per_s;
  for (; at > 0 && links[at - 1].gb_per_s < links[at].gb_per_s; --at) {
    std::swap(links[at], links[at - 1]);
  }
}

int TopologyBuilder::HostOf(const SystemElement& cpu) {
  const std::string* hash = cpu.Find("host_hash");
  const std::string key = hash == nullptr ? "" : *hash;
  const auto found = std::find(host_hashes_.begin(), host_hashes_.end(), key);
  if (found == host_hashes_.end()) {
    host_hashes_.push_back(key);
    return static_cast<int>(host_hashes_.size()) - 1;
  }
  return static_cast<int>(found - host_hashes_.begin());
}

absl::Status TopologyBuilder::AddCpu(const SystemElement& cpu) {
  const auto cpus = std::count_if(nodes_.begin(), nodes_.end(), [](const TopologyNode& node) {
    return node.kind == NodeKind::kCpu;
  });
  if (cpus >= kMaxCpus) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxCpus, " processors; describe one host or NVLink domain."));
  }
  const int host = HostOf(cpu);
  ASSIGN_OR_RETURN(const int64_t numa, cpu.Integer("numaid"));
  const int index = AddNode(NodeKind::kCpu, numa, host);
  ASSIGN_OR_RETURN(nodes_[index].arch, cpu.Text("arch"));
  if (nodes_[index].arch == "x86_64") {
    ASSIGN_OR_RETURN(nodes_[index].vendor, cpu.Text("vendor"));
    ASSIGN_OR_RETURN(nodes_[index].family, Int(cpu, "familyid", 0));
    ASSIGN_OR_RETURN(nodes_[index].model, Int(cpu, "modelid", 0));
  }
  for (const SystemElement& child : cpu.children) {
    if (child.name == "pci") {
      RETURN_IF_ERROR(AddPci(child, index, host));
    }
    if (child.name != "nic") continue;
    // Cards without an address are one, below the first NUMA node that has them.
    const int64_t id = 0;
    int nic = Find(NodeKind::kNic, id, host);
    if (nic < 0) {
      nic = AddNode(NodeKind::kNic, id, host);
      Connect(index, nic, LinkType::kPci, LocalRate(version_));
      Connect(nic, index, LinkType::kPci, LocalRate(version_));
    }
    RETURN_IF_ERROR(AddNic(child, nullptr, nic, host));
  }
  return absl::OkStatus();
}

absl::Status TopologyBuilder::AddPci(const SystemElement& pci, int parent, int host) {
  if (nodes_.size() > kMaxNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxNodes, " devices; describe one host or NVLink domain."));
  }
  ASSIGN_OR_RETURN(const std::string pci_class, pci.Text("class"));
  ASSIGN_OR_RETURN(int64_t bus, BusId(pci, "busid"));
  ASSIGN_OR_RETURN(const int width, Int(pci, "link_width", 0));
  if (width < 0 || width > 64) {
    return absl::InvalidArgumentError(
        absl::StrCat(pci.Place(), ": link_width=\"", width, "\"; PCIe has 1 to 32 lanes."));
  }
  const std::string* speed = pci.Find("link_speed");
  const float rate = PcieRate(speed == nullptr ? "" : *speed, width);
  bool skipped = false;
  RETURN_IF_ERROR(AddGpus(pci, parent, host, bus, rate, &skipped));
  if (skipped) return absl::OkStatus();

  const auto nic = std::find_if(pci.children.begin(), pci.children.end(),
                                [](const SystemElement& child) { return child.name == "nic"; });
  int node = -1;
  if (nic != pci.children.end()) {
    if (version_ == NcclVersion::k2_17) bus &= ~int64_t{0xf};  // ports of one card are one
    int card = Find(NodeKind::kNic, bus, host);
    if (card < 0) node = card = AddNode(NodeKind::kNic, bus, host);
    RETURN_IF_ERROR(AddNic(*nic, &pci, card, host));
  } else if (KindOfClass(pci_class) == NodeKind::kPci) {
    node = AddNode(NodeKind::kPci, bus, host);
    nodes_[node].pci_device = DeviceIds(pci);
    switches_.emplace_back(&pci, node);
    for (const SystemElement& child : pci.children) {
      if (child.name == "pci") {
        RETURN_IF_ERROR(AddPci(child, node, host));
      }
    }
  }
  if (node >= 0) {
    Connect(node, parent, LinkType::kPci, rate);
    Connect(parent, node, LinkType::kPci, rate);
  }
  return absl::OkStatus();
}

absl::Status TopologyBuilder::AddGpus(const SystemElement& pci, int parent, int host, int64_t bus,
                                      float rate, bool* skipped) {
  int device = -1;
  int64_t part = 0;
  for (const SystemElement& gpu : pci.children) {
    if (gpu.name != "gpu") continue;
    *skipped = true;
    if (!gpu.Has("rank")) return absl::OkStatus();  // another job's
    const bool with_device = version_ == NcclVersion::k2_30;
    if (!with_device && device >= 0) return absl::OkStatus();
    if (device < 0 && with_device) {
      device = AddNode(NodeKind::kDevice, bus, host);
      nodes_[device].device = device;
      Connect(device, parent, LinkType::kPci, rate);
      Connect(parent, device, LinkType::kPci, rate);
    }
    const int node = AddNode(NodeKind::kGpu, bus + (part++ << 40), host);
    if (!with_device) {
      device = node;
      Connect(node, parent, LinkType::kPci, rate);
      Connect(parent, node, LinkType::kPci, rate);
    } else {
      Connect(device, node, LinkType::kLoc, LocalRate(version_));
      Connect(node, device, LinkType::kLoc, LocalRate(version_));
    }
    nodes_[node].device = device;
    ASSIGN_OR_RETURN(nodes_[node].rank, NeededInt(gpu, "rank"));
    ASSIGN_OR_RETURN(nodes_[node].compute_capability, CapabilityOf(gpu));
    ASSIGN_OR_RETURN(nodes_[node].dev, NeededInt(gpu, "dev"));
    ASSIGN_OR_RETURN(const int gdr, Int(gpu, "gdr", 0));
    nodes_[node].gdr = gdr != 0;
    nodes_[device].compute_capability = nodes_[node].compute_capability;
    nodes_[device].dev = nodes_[node].dev;
    if (part == 1) gpus_.push_back({&gpu, device, host});
  }
  return absl::OkStatus();
}

absl::Status TopologyBuilder::AddNic(const SystemElement& nic, const SystemElement* pci, int node,
                                     int host) {
  for (const SystemElement& net : nic.children) {
    if (net.name != "net" || !net.Has("dev")) continue;
    ASSIGN_OR_RETURN(const int used, Int(net, "net", 1));
    if (used == 0) continue;
    ASSIGN_OR_RETURN(const int dev, NeededInt(net, "dev"));
    const int index = AddNode(NodeKind::kNet, dev, host);
    TopologyNode& device = nodes_[index];
    device.dev = dev;
    device.asic = HexOr(net.Find("guid"), net.Has("guid") ? 0 : dev);
    ASSIGN_OR_RETURN(int mbit, Int(net, "speed", 0));
    if (mbit <= 0) mbit = 10000;
    device.gb_per_s = mbit / 8000.0;
    ASSIGN_OR_RETURN(device.latency_us, net.Number("latency", 0));
    ASSIGN_OR_RETURN(device.port, Int(net, "port", 0));
    ASSIGN_OR_RETURN(const int gdr, Int(net, "gdr", 0));
    device.gdr = gdr != 0;
    ASSIGN_OR_RETURN(device.max_connections, Int(net, "maxconn", 64));
    ASSIGN_OR_RETURN(const int collectives, Int(net, "coll", 0));
    device.collectives = collectives != 0;
    ASSIGN_OR_RETURN(device.rail, Int(net, "rail", -1));
    ASSIGN_OR_RETURN(device.plane, Int(net, "plane", -1));
    if (pci != nullptr && HexOr(pci->Find("vendor"), 0) == 0x15b3) {
      const uint64_t type = HexOr(pci->Find("device"), 0);
      device.connectx8 = type == 0x1023 || type == 0x2100;
    }
    const float rate = device.gb_per_s;
    Connect(node, index, LinkType::kNet, rate);
    Connect(index, node, LinkType::kNet, rate);
  }
  return absl::OkStatus();
}

absl::Status TopologyBuilder::AddNvlinks(const PendingGpu& gpu) {
  const float link = GpuLinkRate(version_, *gpu.gpu, nodes_[gpu.node].compute_capability);
  for (const SystemElement& nvlink : gpu.gpu->children) {
    if (nvlink.name != "nvlink" && nvlink.name != "xgmi") continue;
    ASSIGN_OR_RETURN(const int count, NeededInt(nvlink, "count"));
    if (count < 1 || count > 1024) {
      return absl::InvalidArgumentError(
          absl::StrCat(nvlink.Place(), ": count=\"", count, "\"; it has to be 1 to 1024."));
    }
    ASSIGN_OR_RETURN(const std::string target_class, nvlink.Text("tclass"));
    const NodeKind kind = KindOfClass(target_class);
    int to = -1;
    if (kind == NodeKind::kGpu) {
      ASSIGN_OR_RETURN(const int64_t bus, BusId(nvlink, "target"));
      to = Find(nodes_[gpu.node].kind, bus, gpu.host);
    } else if (kind == NodeKind::kCpu) {
      to = LocalCpu(gpu.node, -1);
    } else {
      // All switches are one, also those of several hosts.
      for (size_t i = 0; i < nodes_.size() && to < 0; ++i) {
        if (nodes_[i].kind == NodeKind::kNvs) to = static_cast<int>(i);
      }
      if (to < 0) to = AddNode(NodeKind::kNvs, 0, 0);
    }
    if (to < 0) continue;  // a GPU that is not described
    Connect(gpu.node, to, LinkType::kNvl, count * link);
    if (kind != NodeKind::kGpu) Connect(to, gpu.node, LinkType::kNvl, count * link);
  }
  return absl::OkStatus();
}

absl::Status TopologyBuilder::AddC2c(const PendingGpu& gpu) {
  if (version_ == NcclVersion::k2_17) return absl::OkStatus();
  for (const SystemElement& c2c : gpu.gpu->children) {
    if (c2c.name != "c2c") continue;
    ASSIGN_OR_RETURN(const int count, NeededInt(c2c, "count"));
    ASSIGN_OR_RETURN(const int mbyte, NeededInt(c2c, "bw"));
    const int cpu = LocalCpu(gpu.node, -1);
    if (cpu < 0 || count < 0 || mbyte < 0) continue;
    const float rate = static_cast<double>(mbyte) * count / 1000.0;
    Connect(gpu.node, cpu, LinkType::kC2c, rate);
    Connect(cpu, gpu.node, LinkType::kC2c, rate);
  }
  return absl::OkStatus();
}

absl::Status TopologyBuilder::AddPciLinks(const SystemElement& pci, int node, int host) {
  for (const SystemElement& link : pci.children) {
    if (link.name != "pcilink" || version_ == NcclVersion::k2_17) continue;
    ASSIGN_OR_RETURN(const int64_t bus, BusId(link, "target"));
    const int to = Find(NodeKind::kPci, bus, host);
    if (to >= 0) Connect(node, to, LinkType::kLoc, LocalRate(version_));
  }
  return absl::OkStatus();
}

// The CPU above a device, by PCIe switches alone.
int TopologyBuilder::LocalCpu(int node, int from) const {
  if (nodes_[node].kind == NodeKind::kCpu) return node;
  for (const Link& link : links_[node]) {
    const NodeKind kind = nodes_[link.to].kind;
    if (link.type != LinkType::kPci || link.to == from ||
        (kind != NodeKind::kPci && kind != NodeKind::kCpu)) {
      continue;
    }
    if (const int cpu = LocalCpu(link.to, node); cpu >= 0) return cpu;
  }
  return -1;
}

absl::Status TopologyBuilder::NumberRanks() {
  std::vector<int> ranks;
  for (const TopologyNode& node : nodes_) {
    if (node.kind == NodeKind::kGpu) ranks.push_back(node.rank);
  }
  if (ranks.size() > kMaxGpus) {
    return absl::InvalidArgumentError(
        absl::StrCat(ranks.size(), " GPUs; a description of one NVLink domain has at most ",
                     kMaxGpus, ". Give the number of hosts beside the description of one."));
  }
  std::sort(ranks.begin(), ranks.end());
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("two <gpu>s have rank ", *twice, ". Give every GPU a rank of its own."));
  }
  for (TopologyNode& node : nodes_) {
    if (node.kind != NodeKind::kGpu) continue;
    node.rank =
        static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), node.rank) - ranks.begin());
  }
  return absl::OkStatus();
}

absl::Status TopologyBuilder::CheckNvlinkPairs() {
  for (const PendingGpu& gpu : gpus_) {
    for (const Link& link : links_[gpu.node]) {
      if (link.type != LinkType::kNvl) continue;
      const std::vector<Link>& back = links_[link.to];
      if (std::any_of(back.begin(), back.end(), [&](const Link& reverse) {
            return reverse.to == gpu.node && reverse.type == LinkType::kNvl;
          })) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          gpu.gpu->Place(), " (dev ", nodes_[gpu.node].dev, ") has an <nvlink> to dev ",
          nodes_[link.to].dev, ", which has none back. Write both directions."));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Topology> TopologyBuilder::Build(const SystemElement& system) {
  for (const SystemElement& cpu : system.children) {
    if (cpu.name == "cpu") {
      RETURN_IF_ERROR(AddCpu(cpu));
    }
  }
  if (host_hashes_.empty()) {
    return absl::InvalidArgumentError(
        "no <cpu> elements. Write the file with: NCCL_TOPO_DUMP_FILE=topo.xml <any NCCL program>.");
  }
  if (gpus_.empty()) {
    return absl::InvalidArgumentError(
        "no <gpu> elements with a rank. Write the file with: NCCL_TOPO_DUMP_FILE=topo.xml <any "
        "NCCL program>, or fill a skeleton's GPUs in.");
  }
  RETURN_IF_ERROR(NumberRanks());
  for (const PendingGpu& gpu : gpus_) RETURN_IF_ERROR(AddNvlinks(gpu));
  for (const PendingGpu& gpu : gpus_) RETURN_IF_ERROR(AddC2c(gpu));
  for (const auto& [pci, node] : switches_) {
    RETURN_IF_ERROR(AddPciLinks(*pci, node, nodes_[node].host));
  }
  RETURN_IF_ERROR(CheckNvlinkPairs());
  FlattenSwitches();
  ConnectCpus();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind == NodeKind::kCpu) PutUplinkLast(static_cast<int>(i), -1);
  }

  Topology topology;
  topology.version_ = version_;
  topology.hosts_ = static_cast<int>(host_hashes_.size());
  topology.nodes_ = std::move(nodes_);
  for (size_t i = 0; i < topology.nodes_.size(); ++i) {
    if (removed_[i]) continue;
    topology.of_[static_cast<int>(topology.nodes_[i].kind)].push_back(static_cast<int>(i));
    for (const Link& link : links_[i]) {
      topology.nodes_[i].links.push_back(static_cast<int>(topology.links_.size()));
      topology.links_.push_back({link.type, link.gb_per_s, static_cast<int>(i), link.to});
    }
  }
  return topology;
}

}  // namespace plancast
