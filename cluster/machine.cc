#include "cluster/machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "cluster/machine_checks.h"
#include "cluster/named_links.h"

namespace plancast {
namespace {

// Links that every device of a host has for itself.
LinkClass PerDevice(LinkKind kind, Level reaches, double bytes_per_s, double latency_s,
                    const Machine::Spec& spec) {
  LinkClass link;
  link.name = std::string(kLinkKindNames[kind]);
  link.kind = kind;
  link.reaches = reaches;
  link.bytes_per_s = bytes_per_s;
  link.latency_s = latency_s;
  link.devices_per_block = spec.gpus_per_host;
  link.instances_per_block = spec.gpus_per_host;
  return link;
}

// The interfaces of a host, in the order of the devices next to them. Several
// interfaces of one device work as one.
LinkClass Nics(const Machine::Spec& spec) {
  const int64_t instances = std::min(spec.nics_per_host, spec.gpus_per_host);
  LinkClass link =
      PerDevice(LinkKind::kNic, spec.hosts_per_pod > 0 ? Level::kPod : Level::kCluster,
                spec.nic_bytes_per_s * spec.nics_per_host / instances, spec.nic_latency_s, spec);
  link.instances_per_block = instances;
  return link;
}

// Whether anything above the leaf switches can be a limit: pods, or rails whose
// leaf switches have narrower uplinks than ports.
bool HasSpine(const Machine::Spec& spec) {
  return spec.hosts_per_pod > 0 || (spec.rail_optimized && spec.oversubscription > 1);
}

// What leaves a pod, one uplink per rail where rails have switches of their own: the share of
// `pod_hosts` in it.
LinkClass Spine(const Machine::Spec& spec, const LinkClass& nics, int64_t pod_hosts) {
  const int64_t hosts = pod_hosts > 0 ? pod_hosts : spec.hosts;
  LinkClass link = nics;
  link.name = std::string(kLinkKindNames[LinkKind::kSpine]);
  link.kind = LinkKind::kSpine;
  link.reaches = Level::kCluster;
  link.devices_per_block = hosts * spec.gpus_per_host;
  link.instances_per_block = spec.rail_optimized ? nics.instances_per_block : 1;
  link.bytes_per_s = nics.bytes_per_s * nics.instances_per_block * hosts / spec.oversubscription /
                     link.instances_per_block;
  return link;
}

// The hosts of one domain that the machine has: whole segments.
int64_t HostsOfDomain(const Machine::Spec& spec) {
  int64_t segment = spec.segment;
  if (segment == 0) {
    if (spec.hosts <= spec.hosts_per_domain) return spec.hosts_per_domain;
    segment = spec.hosts_per_domain;
    while (spec.hosts % segment != 0) --segment;
  }
  return spec.hosts_per_domain / segment * segment;
}

// What lies between the links of devices and their host's memory, and that memory.
void AddHostMemory(const Machine::Spec& spec, std::vector<LinkClass>* links) {
  const bool has_switches = std::any_of(links->begin(), links->end(), [](const LinkClass& link) {
    return link.kind == LinkKind::kPcieSwitch;
  });
  int64_t below = spec.gpus_per_host_uplink;
  if (below == 0 && (spec.topology == "pcie-switch" || spec.topology == "host-bridge")) {
    below = spec.gpus_per_host;
  }
  const double uplink_rate =
      spec.host_uplink_bytes_per_s > 0 ? spec.host_uplink_bytes_per_s : spec.pcie_bytes_per_s;
  const int64_t uplinks = (spec.gpus_per_host + below - 1) / std::max<int64_t>(below, 1);
  if (below > 1 && uplinks < spec.gpus_per_host && uplink_rate > 0 && spec.c2c_bytes_per_s == 0 &&
      !has_switches) {
    LinkClass uplink = PerDevice(LinkKind::kHostUplink, Level::kDevice, uplink_rate, 0, spec);
    uplink.instances_per_block = uplinks;
    links->push_back(std::move(uplink));
  }
  if (spec.host_memory_bytes_per_s <= 0) return;
  LinkClass memory =
      PerDevice(LinkKind::kHostMemory, Level::kDevice, spec.host_memory_bytes_per_s, 0, spec);
  memory.instances_per_block = 1;
  memory.duplex = false;
  links->push_back(std::move(memory));
}

}  // namespace

absl::StatusOr<LinkKind> IntraLinkKind(absl::string_view intra_link) {
  if (absl::StartsWith(intra_link, "nvlink")) return LinkKind::kNvlink;
  if (absl::StartsWith(intra_link, "xgmi")) return LinkKind::kXgmi;
  if (absl::StartsWith(intra_link, "pcie")) return LinkKind::kPcie;
  return absl::InvalidArgumentError(
      absl::StrCat("`intra_link` is `", intra_link,
                   "`, whose kind is unknown. Name a generation of NVLink, xGMI or PCIe, such as "
                   "`nvlink4`, `xgmi` or `pcie4`."));
}

absl::StatusOr<Machine> Machine::Create(Spec spec) {
  if (absl::Status status = CheckMachineSpec(spec); !status.ok()) return status;
  if (!spec.sections.empty()) return CreateMixed(std::move(spec));
  Machine machine(std::move(spec));
  machine.num_devices_ = machine.spec_.hosts * machine.spec_.gpus_per_host;
  machine.gpus_per_domain_ = machine.spec_.gpus_per_host * HostsOfDomain(machine.spec_);
  machine.AddLinkClasses();
  if (absl::Status status = machine.Verify(); !status.ok()) return status;
  return machine;
}

Machine::Machine(Spec spec) : spec_(std::move(spec)) {}

void Machine::AddLinkClasses() {
  const LinkKind intra = *IntraLinkKind(spec_.intra_link);
  if (spec_.c2c_bytes_per_s > 0) {
    link_classes_.push_back(
        PerDevice(LinkKind::kC2c, Level::kDevice, spec_.c2c_bytes_per_s, 1e-6, spec_));
  } else if (intra != LinkKind::kPcie && spec_.pcie_bytes_per_s > 0) {
    link_classes_.push_back(
        PerDevice(LinkKind::kPcie, Level::kDevice, spec_.pcie_bytes_per_s, 1e-6, spec_));
  }
  if (spec_.intra_bytes_per_s > 0) {
    intra_class_ = static_cast<int>(link_classes_.size());
    link_classes_.push_back(PerDevice(intra,
                                      spec_.hosts_per_domain > 1 ? Level::kDomain : Level::kHost,
                                      spec_.intra_bytes_per_s, spec_.intra_latency_s, spec_));
  }
  if (spec_.topology == "host-bridge" && spec_.gpus_per_switch < spec_.gpus_per_host) {
    const auto or_port = [&](double figure) {
      return figure > 0 ? figure : spec_.intra_bytes_per_s;
    };
    LinkClass uplink = PerDevice(LinkKind::kPcieSwitch, Level::kHost,
                                 or_port(spec_.switch_bytes_per_s), spec_.intra_latency_s, spec_);
    uplink.instances_per_block =
        (spec_.gpus_per_host + spec_.gpus_per_switch - 1) / spec_.gpus_per_switch;
    link_classes_.push_back(std::move(uplink));
    LinkClass bridge =
        PerDevice(LinkKind::kHostBridge, Level::kHost, or_port(spec_.host_bridge_bytes_per_s),
                  spec_.intra_latency_s, spec_);
    bridge.instances_per_block = 1;
    link_classes_.push_back(std::move(bridge));
  }
  if (spec_.nics_per_host > 0 && spec_.nic_bytes_per_s > 0) {
    const LinkClass nics = Nics(spec_);
    link_classes_.push_back(nics);
    if (HasSpine(spec_)) link_classes_.push_back(Spine(spec_, nics, hosts_per_pod()));
  }
  AddHostMemory(spec_, &link_classes_);
}

int Machine::FindLinkClass(LinkKind kind) const {
  for (size_t i = 0; i < link_classes_.size(); ++i) {
    if (link_classes_[i].kind == kind) return static_cast<int>(i);
  }
  return -1;
}

int64_t Machine::LinkInstance(int link_class, int64_t device) const {
  const LinkClass& link = link_classes_[link_class];
  if (mixed()) {
    if (link.kind == LinkKind::kBetween) return 0;
    const Section& at = sections_[link.section];
    return at.machine->LinkInstance(link_class - at.link_class, device - at.device);
  }
  const int64_t local = device % spec_.gpus_per_host;
  return device / link.devices_per_block * link.instances_per_block +
         local * link.instances_per_block / spec_.gpus_per_host;
}

int64_t Machine::NumLinkInstances(int link_class) const {
  const LinkClass& link = link_classes_[link_class];
  if (mixed()) {
    if (link.kind == LinkKind::kBetween) return 1;
    const Section& at = sections_[link.section];
    return at.machine->NumLinkInstances(link_class - at.link_class);
  }
  const int64_t blocks = (num_devices() + link.devices_per_block - 1) / link.devices_per_block;
  return blocks * link.instances_per_block;
}

std::pair<int64_t, int64_t> Machine::BlockOf(int link_class, int64_t device) const {
  const LinkClass& link = link_classes_[link_class];
  const int64_t first = FirstDevice(link.section);
  const int64_t begin = first + (device - first) / link.devices_per_block * link.devices_per_block;
  return {begin,
          std::min(begin + link.devices_per_block, first + section(link.section).num_devices())};
}

int Machine::SectionOf(int64_t device) const {
  int section = num_sections() - 1;
  while (section > 0 && device < sections_[section].device) --section;
  return section;
}

int64_t Machine::HostOf(int64_t device) const {
  if (!mixed()) return device / spec_.gpus_per_host;
  const Section& at = sections_[SectionOf(device)];
  return at.host + at.machine->HostOf(device - at.device);
}

int64_t Machine::DomainOf(int64_t device) const {
  if (!mixed()) return device / gpus_per_domain_;
  const Section& at = sections_[SectionOf(device)];
  return at.domain + at.machine->DomainOf(device - at.device);
}

int64_t Machine::PodOf(int64_t device) const {
  if (mixed()) {
    const Section& at = sections_[SectionOf(device)];
    return at.pod + at.machine->PodOf(device - at.device);
  }
  return spec_.hosts_per_pod > 0 ? HostOf(device) / hosts_per_pod() : 0;
}

Level Machine::CommonLevel(int64_t a, int64_t b) const {
  if (a == b) return Level::kDevice;
  if (HostOf(a) == HostOf(b)) return Level::kHost;
  if (DomainOf(a) == DomainOf(b)) return Level::kDomain;
  return PodOf(a) == PodOf(b) ? Level::kPod : Level::kCluster;
}

const DeviceType& Machine::device() const {
  PLANCAST_CHECK(!mixed()) << "`" << spec_.name << "` has several types of devices";
  return spec_.device;
}

double Machine::MeshShare(int64_t members) const {
  const int64_t gpus = spec_.gpus_per_host;
  if (spec_.topology != "cube-mesh" || members >= gpus || members < 2) return 1.0;
  if (gpus == 8 && absl::StartsWith(spec_.intra_link, "nvlink")) {
    // The hybrid cube mesh of the DGX-1: of the six links of a device, four stay
    // in its quad, and one joins it to its neighbour.
    return members == 2 ? 1.0 / 6 : members == 3 ? 2.0 / 6 : 4.0 / 6;
  }
  return static_cast<double>(members - 1) / static_cast<double>(gpus - 1);
}

double Machine::ComputeScale(int64_t device) const {
  for (const DeviceOverride& o : spec_.device_overrides) {
    if (o.device == device) return o.compute_scale;
  }
  return 1.0;
}

double Machine::LinkScale(int link_class, int64_t instance) const {
  for (const LinkOverride& o : spec_.link_overrides) {
    if (o.link_class == link_class && o.instance == instance) return o.capacity_scale;
  }
  return 1.0;
}

absl::Status Machine::Verify() const {
  if (absl::Status status = CheckMachineSpec(spec_); !status.ok()) return status;
  for (const LinkOverride& o : spec_.link_overrides) {
    if (o.link_class < 0 || o.link_class >= static_cast<int>(link_classes_.size())) {
      return absl::InvalidArgumentError(absl::StrCat("a link override names link class ",
                                                     o.link_class, "; the machine has ",
                                                     link_classes_.size(), ", counted from 0."));
    }
    const int64_t count = NumLinkInstances(o.link_class);
    if (o.instance < 0 || o.instance >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("a link override names `", link_classes_[o.link_class].name, "` ",
                       o.instance, "; the machine has ", count, " of them, counted from 0."));
    }
  }
  return absl::OkStatus();
}

std::string Machine::DebugString() const {
  std::string text;
  if (mixed()) {
    absl::StrAppendFormat(&text, "%s: %d hosts, %d devices\n",
                          spec_.name.empty() ? "machine" : spec_.name, spec_.hosts, num_devices_);
  } else {
    absl::StrAppendFormat(&text, "%s: %d x %d %s, %s\n",
                          spec_.name.empty() ? "machine" : spec_.name, spec_.hosts,
                          spec_.gpus_per_host, spec_.device.name, spec_.topology);
  }
  for (size_t i = 0; i < link_classes_.size(); ++i) {
    const LinkClass& link = link_classes_[i];
    if (mixed() && (i == 0 || link.section != link_classes_[i - 1].section)) {
      const Section& at = sections_[link.section];
      const Spec& spec = at.machine->spec();
      absl::StrAppendFormat(&text, " hosts %d-%d, devices %d-%d: %d x %d %s, %s\n", at.host,
                            at.host + spec.hosts - 1, at.device,
                            at.device + at.machine->num_devices() - 1, spec.hosts,
                            spec.gpus_per_host, spec.device.name, spec.topology);
    }
    absl::StrAppendFormat(&text, "  %s: %d x %g GB/s, %g us, reaches %s\n", link.name,
                          NumLinkInstances(static_cast<int>(i)), link.bytes_per_s / 1e9,
                          link.latency_s * 1e6, kLevelNames[link.reaches]);
  }
  for (const DeviceOverride& o : spec_.device_overrides) {
    absl::StrAppendFormat(&text, "  device %d runs at %g of the speed\n", o.device,
                          o.compute_scale);
  }
  for (const LinkOverride& o : spec_.link_overrides) {
    absl::StrAppendFormat(&text, "  %s %d has %g of the capacity\n",
                          link_classes_[o.link_class].name,
                          LinkNumber(*this, o.link_class, o.instance), o.capacity_scale);
  }
  return text;
}

}  // namespace plancast
