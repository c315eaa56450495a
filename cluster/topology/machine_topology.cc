#include "cluster/topology/machine_topology.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/topology/host_shapes.h"

namespace plancast {
namespace {

constexpr absl::string_view kSwitchBus = "fffffff:ff:ff.0";
constexpr int kGpuBus = 0x200, kNicBus = 0x300, kPciSwitchBus = 0x100;

// Ethernet from 100 Gbit/s on reaches the memory of GPUs directly (RoCE, GPUDirect-TCPX).
constexpr double kDirectEthernet = 12.4e9;

struct PcieSpeed {
  absl::string_view generation, speed;
  double gb_per_s;  // nominal, 16 lanes
};
constexpr PcieSpeed kPcie[] = {
    {"pcie3", "8.0 GT/s PCIe", 16},
    {"pcie4", "16.0 GT/s PCIe", 32},
    {"pcie5", "32.0 GT/s PCIe", 64},
    {"pcie6", "64.0 GT/s PCIe", 128},
};

// The first generation with at least that rate.
const PcieSpeed& PcieFor(double bytes_per_s) {
  for (const PcieSpeed& speed : kPcie) {
    if (bytes_per_s <= speed.gb_per_s * 1.001e9) return speed;
  }
  return kPcie[3];
}

const PcieSpeed& PcieOf(const Machine::Spec& spec) {
  for (const PcieSpeed& speed : kPcie) {
    if (spec.intra_link == speed.generation) return speed;
  }
  return PcieFor(spec.pcie_bytes_per_s);
}

int Round(double value) { return static_cast<int>(std::lround(value)); }

// Writes the description of one host after another.
class HostWriter {
 public:
  explicit HostWriter(const Machine& machine);

  MachineTopology Write();

 private:
  void AddHost(int host);
  void AddGpu(SystemElement& parent, int host, int gpu);
  void AddNic(SystemElement& parent, int nic);
  void AddNvlinks(SystemElement& gpu, int index);
  SystemElement& AddPci(SystemElement& parent, const std::string& bus, absl::string_view pci_class,
                        const PcieSpeed& speed, int lanes) const;
  int LanesOf() const;
  std::string BusId(int base, int index) const;
  bool NicsAtSwitches() const;

  const Machine& machine_;
  const Machine::Spec& spec_;
  const PcieSpeed& pcie_;
  MachineTopology result_;
  const proto::KnownCpu* cpu_ = nullptr;
  int gpus_ = 1, nics_ = 0, switches_ = 1, sockets_ = 1;
  int compute_capability_ = 0, nvlinks_ = 0;
  bool grace_ = false;
};

HostWriter::HostWriter(const Machine& machine)
    : machine_(machine), spec_(machine.spec()), pcie_(PcieOf(spec_)) {
  gpus_ = static_cast<int>(spec_.gpus_per_host);
  nics_ = spec_.nic_bytes_per_s > 0 ? static_cast<int>(spec_.nics_per_host) : 0;
  const proto::KnownGpu* known = FindKnownGpu(spec_.device.name);
  if (known == nullptr) known = FindKnownGpu(spec_.device.like);
  const bool nvlink = absl::StartsWith(spec_.intra_link, "nvlink");
  if (known != nullptr) {
    compute_capability_ = known->compute_capability();
    if (known->stands_for()) {
      result_.assumptions.push_back(absl::StrCat("NCCL does not run on ", spec_.device.name,
                                                 "; it stands for one of compute capability ",
                                                 compute_capability_, "."));
    }
  } else {
    compute_capability_ = spec_.intra_link == "nvlink2"   ? 70
                          : spec_.intra_link == "nvlink3" ? 80
                          : spec_.intra_link == "nvlink5" ? 100
                          : spec_.intra_link == "pcie3"   ? 70
                          : spec_.intra_link == "pcie4"   ? 80
                                                          : 90;
    result_.assumptions.push_back(absl::StrCat("GPU `", spec_.device.name,
                                               "` has compute capability ", compute_capability_,
                                               ", by its links."));
  }
  if (nvlink || spec_.intra_link == "xgmi") {
    const double link = spec_.intra_link == "nvlink5" ? 50e9 : 25e9;
    nvlinks_ = std::max(1, Round(spec_.intra_bytes_per_s / link));
  }
  cpu_ = &CpuOf(spec_.name, pcie_.generation);
  grace_ = cpu_->arch() == "arm64";
  result_.assumptions.push_back(absl::StrCat(
      "Processors: ", cpu_->arch(), cpu_->has_vendor() ? absl::StrCat(" ", cpu_->vendor()) : "",
      " (", cpu_->source(), ")."));
  if (spec_.topology == "host-bridge") {
    const int below = static_cast<int>(std::max<int64_t>(1, spec_.gpus_per_switch));
    switches_ = (gpus_ + below - 1) / below;
    sockets_ = gpus_ >= 8 ? 2 : 1;
  } else if (spec_.topology == "pcie-switch") {
    switches_ = sockets_ = 1;
  } else if (grace_) {
    switches_ = sockets_ = std::max(1, gpus_ / 2);
  } else {
    const int below = GpusPerPciSwitch(spec_.intra_link);
    switches_ = (gpus_ + below - 1) / below;
    if (nics_ >= 2) switches_ = std::min(switches_, nics_);
    sockets_ = switches_ >= 2 ? 2 : 1;
  }
}

// Machines with fewer interfaces than switches have them at the host bridge.
bool HostWriter::NicsAtSwitches() const {
  if (grace_) return false;
  return spec_.topology == "pcie-switch" || nics_ >= switches_;
}

std::string HostWriter::BusId(int base, int index) const {
  return absl::StrFormat("%04x:%02x:00.0", base + index / 256, index % 256);
}

int HostWriter::LanesOf() const {
  if (nvlinks_ > 0 || spec_.intra_bytes_per_s <= 0) return 16;
  const double share = spec_.intra_bytes_per_s / (pcie_.gb_per_s * 1e9);
  for (int lanes : {1, 2, 4, 8}) {
    if (share * 16 <= lanes * 1.01) return lanes;
  }
  return 16;
}

SystemElement& HostWriter::AddPci(SystemElement& parent, const std::string& bus,
                                  absl::string_view pci_class, const PcieSpeed& speed,
                                  int lanes) const {
  SystemElement& pci = parent.Add("pci");
  pci.Set("busid", bus);
  pci.Set("class", pci_class);
  pci.Set("link_speed", speed.speed);
  pci.Set("link_width", absl::StrCat(lanes));
  return pci;
}

void HostWriter::AddNvlinks(SystemElement& gpu, int index) {
  auto add = [&](absl::string_view target, int count, absl::string_view target_class) {
    SystemElement& link = gpu.Add("nvlink");
    link.Set("target", target);
    link.Set("count", absl::StrCat(count));
    link.Set("tclass", target_class);
  };
  if (nvlinks_ == 0 || machine_.gpus_per_domain() == 1) return;
  if (spec_.topology != "cube-mesh") {
    add(kSwitchBus, nvlinks_, "0x068000");
    return;
  }
  if (gpus_ == 8 && nvlinks_ == 6) {
    for (const proto::MeshLink& link : HostShapes().hybrid_cube_mesh()) {
      if (link.a() == index) add(BusId(kGpuBus, link.b()), link.count(), "0x030200");
      if (link.b() == index) add(BusId(kGpuBus, link.a()), link.count(), "0x030200");
    }
    return;
  }
  if (nvlinks_ < gpus_ - 1) {
    // Too few for all pairs: to the neighbours.
    const int before = (index - 1 + gpus_) % gpus_, behind = (index + 1) % gpus_;
    for (int peer : {before, behind}) {
      add(BusId(kGpuBus, peer), std::max(1, nvlinks_ / 2), "0x030200");
    }
    return;
  }
  const int count = Round(static_cast<double>(nvlinks_) / (gpus_ - 1));
  for (int peer = 0; peer < gpus_; ++peer) {
    if (peer != index) add(BusId(kGpuBus, peer), count, "0x030200");
  }
}

void HostWriter::AddGpu(SystemElement& parent, int host, int index) {
  SystemElement& pci = AddPci(parent, BusId(kGpuBus, index), "0x030200", pcie_, LanesOf());
  SystemElement& gpu = pci.Add("gpu");
  gpu.Set("dev", absl::StrCat(index));
  gpu.Set("sm", absl::StrCat(compute_capability_));
  gpu.Set("rank", absl::StrCat(host * gpus_ + index));
  gpu.Set("gdr", "1");
  AddNvlinks(gpu, index);
  if (grace_) {
    SystemElement& c2c = gpu.Add("c2c");
    c2c.Set("bw", "450000");  // NVLink-C2C: 900 GB/s, both directions together
    c2c.Set("count", "1");
  }
}

void HostWriter::AddNic(SystemElement& parent, int index) {
  const PcieSpeed& needed = PcieFor(spec_.nic_bytes_per_s);
  const PcieSpeed& speed = needed.gb_per_s > pcie_.gb_per_s ? needed : pcie_;
  SystemElement& pci = AddPci(parent, BusId(kNicBus, index), "0x020700", speed, 16);
  SystemElement& net = pci.Add("nic").Add("net");
  net.Set("name", absl::StrCat("mlx5_", index));
  net.Set("dev", absl::StrCat(index));
  net.Set("speed", absl::StrCat(Round(spec_.nic_bytes_per_s * 8 / 1e6)));
  net.Set("port", "1");
  net.Set("latency", "0");
  net.Set("guid", absl::StrFormat("0x%x", 0x1000 + index));
  net.Set("maxconn", "131072");
  const bool slow = spec_.fabric == "ethernet" && spec_.nic_bytes_per_s < kDirectEthernet;
  net.Set("gdr", slow ? "0" : "1");
  if (spec_.rail_optimized) net.Set("rail", absl::StrCat(index));
}

void HostWriter::AddHost(int host) {
  // Devices and interfaces are spread evenly, as the machine spreads them.
  auto part = [](int index, int of, int parts) {
    return static_cast<int>(int64_t{index} * parts / of);
  };
  for (int socket = 0; socket < sockets_; ++socket) {
    SystemElement& cpu = result_.system.Add("cpu");
    cpu.Set("numaid", absl::StrCat(socket));
    cpu.Set("arch", cpu_->arch());
    if (cpu_->has_vendor()) {
      cpu.Set("vendor", cpu_->vendor());
      cpu.Set("familyid", absl::StrCat(cpu_->family()));
      cpu.Set("modelid", absl::StrCat(cpu_->model()));
    }
    if (spec_.hosts_per_domain > 1) cpu.Set("host_hash", absl::StrFormat("0x%x", host + 1));
    for (int s = 0; s < switches_; ++s) {
      if (part(s, switches_, sockets_) != socket) continue;
      SystemElement* parent = &cpu;
      if (!grace_) {
        parent = &AddPci(cpu, BusId(kPciSwitchBus, s), "0x060400", pcie_, 16);
      }
      for (int gpu = 0; gpu < gpus_; ++gpu) {
        if (part(gpu, gpus_, switches_) == s) AddGpu(*parent, host, gpu);
      }
      for (int nic = 0; nic < nics_ && NicsAtSwitches(); ++nic) {
        if (part(nic, nics_, switches_) == s) AddNic(*parent, nic);
      }
    }
    for (int nic = 0; nic < nics_ && !NicsAtSwitches(); ++nic) {
      if (part(nic, nics_, sockets_) == socket) AddNic(cpu, nic);
    }
  }
}

MachineTopology HostWriter::Write() {
  result_.system.name = "system";
  result_.system.Set("version", "1");
  const int64_t of_domain = machine_.hosts_per_domain();
  for (int host = 0; host < std::min(spec_.hosts, of_domain); ++host) AddHost(host);
  result_.hosts = static_cast<int>((spec_.hosts + of_domain - 1) / of_domain);
  return std::move(result_);
}

}  // namespace

MachineTopology TopologyOf(const Machine& machine) { return HostWriter(machine).Write(); }

}  // namespace plancast
