#ifndef PLANCAST_CLUSTER_MACHINE_H_
#define PLANCAST_CLUSTER_MACHINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/link_class.h"

namespace plancast {

// What one accelerator can do, from its data sheet. Rates are dense, per
// second; 0 means "this device has no such unit" or "unknown".
struct DeviceType {
  std::string name;  // as in kernels/hardware.csv, e.g. `H100-SXM-80GB`
  int sms = 0;
  double memory_bytes = 0;  // capacity in bytes (GB figures times 2^30)
  double usable_bytes = 0;  // what the driver leaves of it to programs; 0: all

  double capacity_bytes() const { return usable_bytes > 0 ? usable_bytes : memory_bytes; }
  double memory_bytes_per_s = 0;
  double l2_bytes = 0;
  double fp32_flops = 0, tf32_flops = 0, fp16_flops = 0, bf16_flops = 0, fp8_flops = 0,
         fp4_flops = 0;
  double boost_mhz = 0;
  double tdp_watts = 0;
  double usd_per_hour = 0;  // 0: unknown
  // Another catalogue entry of the same chip, whose kernels run alike; or "".
  std::string like;
  std::string source;
};

// A cluster of equal hosts: `hosts` hosts of `gpus_per_host` devices; device id =
// host * gpus_per_host + local index. A domain is the set of devices joined by
// NVLink (one host, or several for NVL72); a pod is the set of hosts below one
// leaf stage of the fabric. Overrides name single devices or links that differ
// (a straggler, a slow link); they are initial colours for folding.
//
// A mixed cluster is a list of sections, each a cluster of equal hosts. Hosts,
// devices, domains and pods are counted on from one section to the next; each has
// link classes of its own, those of the first section first. Traffic between
// sections crosses the interfaces, the spines and the `between` of both. What
// holds for one section is asked of section(i), a machine by itself.
class Machine {
 public:
  struct DeviceOverride {
    int64_t device = 0;
    double compute_scale = 1.0;  // 0.8 = runs at 80 % speed
  };
  struct LinkOverride {
    int link_class = 0;
    int64_t instance = 0;
    double capacity_scale = 1.0;
  };

  struct Spec {
    std::string name;
    DeviceType device;
    int64_t hosts = 1;
    int64_t gpus_per_host = 8;
    int64_t hosts_per_domain = 1;
    // Hosts of one domain that a job is placed on together, as by Slurm's --segment: a domain gives
    // as many whole segments as it holds. 0: the largest divisor of `hosts` that a domain holds, as
    // Megatron-Bridge asks for.
    int64_t segment = 0;
    // `nvswitch`, `cube-mesh`, `nvl72`, `pcie-switch`, `host-bridge`
    std::string topology = "nvswitch";
    std::string intra_link = "nvlink3";
    double intra_bytes_per_s = 0;  // per device and direction
    double intra_latency_s = 0;
    // `host-bridge` only: devices below one PCIe switch, whose traffic among
    // themselves stays off its uplink and the bridge, and the capacity of both per
    // direction.
    int64_t gpus_per_switch = 2;
    double switch_bytes_per_s = 0;       // 0: as intra_bytes_per_s
    double host_bridge_bytes_per_s = 0;  // 0: as intra_bytes_per_s
    int64_t nics_per_host = 1;
    double nic_bytes_per_s = 0;  // per NIC and direction
    double nic_latency_s = 0;
    // Interfaces of a host over which the rings of all groups with several
    // members there run together; 0: over all next to the members.
    int64_t ring_nics = 0;
    std::string fabric = "infiniband";
    int64_t hosts_per_pod = 0;      // 0: one pod
    double oversubscription = 1.0;  // uplinks of a pod or rail = bandwidth of its NICs / this
    bool rail_optimized = true;
    double pcie_bytes_per_s = 0;  // device to host, per direction; 0: none
    double c2c_bytes_per_s = 0;   // the same over a link that takes the place of PCIe; 0: none
    // The share of it that copies between page-locked host memory and a device reach.
    double host_copy_share = 1;
    // Devices of a host that reach its memory through one PCIe uplink; 0: those below
    // one PCIe switch where the topology has such, else each has its own.
    int64_t gpus_per_host_uplink = 0;
    double host_uplink_bytes_per_s = 0;  // 0: as pcie_bytes_per_s
    double host_memory_bytes = 0;        // capacity of one host; 0: unknown
    double host_memory_bytes_per_s = 0;  // all sockets of one host; 0: unlimited
    double host_update_share = 1;        // of that, by an optimizer on its processors
    double host_launch_factor = 1;       // times as long as software profiles say, to launch
    std::string source;
    std::vector<DeviceOverride> device_overrides;
    std::vector<LinkOverride> link_overrides;

    // Of a mixed cluster, at least two, without overrides or sections of their own. Of
    // the fields above only the name, the source and the overrides say anything then;
    // Create fills in `hosts`, and `gpus_per_host` (0: not all alike).
    std::vector<Spec> sections;
    // All links of a section to the others, per direction; 0: its interfaces and spine
    // are the only limit.
    double between_bytes_per_s = 0;
    double between_latency_s = 0;
  };

  static absl::StatusOr<Machine> Create(Spec spec);

  const Spec& spec() const { return spec_; }
  // Of machines that are not mixed.
  const DeviceType& device() const;
  int64_t num_devices() const { return num_devices_; }
  // That belong to the machine: those of whole segments (Spec::segment). Of a mixed machine: of its
  // smallest domains.
  int64_t gpus_per_domain() const { return gpus_per_domain_; }
  // The same in hosts, and the hosts of a pod, whose domains all give as many (0: one pod). Of
  // machines that are not mixed.
  int64_t hosts_per_domain() const { return gpus_per_domain_ / spec_.gpus_per_host; }
  int64_t hosts_per_pod() const {
    return spec_.hosts_per_pod / spec_.hosts_per_domain * hosts_per_domain();
  }

  bool mixed() const { return !sections_.empty(); }
  int num_sections() const { return mixed() ? static_cast<int>(sections_.size()) : 1; }
  // A machine by itself, which counts all from 0; this one if it is not mixed.
  const Machine& section(int index) const { return mixed() ? *sections_[index].machine : *this; }
  int SectionOf(int64_t device) const;
  int64_t FirstDevice(int section) const { return mixed() ? sections_[section].device : 0; }
  int FirstLinkClass(int section) const { return mixed() ? sections_[section].link_class : 0; }
  const DeviceType& DeviceOf(int64_t device) const { return section(SectionOf(device)).device(); }

  // Innermost links first. A message between devices of one domain crosses
  // the links that reach kHost or kDomain; between domains also the NICs;
  // between pods and between rails also the spine. The uplinks of PCIe switches
  // and the host bridge are crossed between switches, and by network traffic of
  // hosts with fewer interfaces than switches.
  const std::vector<LinkClass>& link_classes() const { return link_classes_; }
  // -1 if the machine has no such class. Of a mixed machine: that of its first section.
  int FindLinkClass(LinkKind kind) const;
  // The class that joins the devices of a host (NVLink, xGMI or PCIe), or -1. Of machines
  // that are not mixed.
  int intra_class() const { return intra_class_; }
  bool Serves(int link_class, int64_t device) const {
    return !mixed() || link_classes_[link_class].section == SectionOf(device);
  }
  // The instance of class `link_class` that serves `device`.
  int64_t LinkInstance(int link_class, int64_t device) const;
  int64_t NumLinkInstances(int link_class) const;
  // [begin, end) of the devices of the block (LinkClass) that holds `device`.
  std::pair<int64_t, int64_t> BlockOf(int link_class, int64_t device) const;

  int64_t HostOf(int64_t device) const;
  int64_t DomainOf(int64_t device) const;
  int64_t PodOf(int64_t device) const;
  // The innermost level that holds both devices.
  Level CommonLevel(int64_t a, int64_t b) const;

  // Of machines that are not mixed. The share of a device's links inside its host that lead to the
  // other members of a group of `members` there: 1 behind a switch, less in a mesh.
  double MeshShare(int64_t members) const;

  // 1.0 unless overridden.
  double ComputeScale(int64_t device) const;
  double LinkScale(int link_class, int64_t instance) const;
  bool uniform() const { return spec_.device_overrides.empty() && spec_.link_overrides.empty(); }

  absl::Status Verify() const;
  std::string DebugString() const;

 private:
  // The first of each in a section.
  struct Section {
    std::shared_ptr<const Machine> machine;
    int64_t device = 0, host = 0, domain = 0, pod = 0;
    int link_class = 0;
  };

  explicit Machine(Spec spec);
  static absl::StatusOr<Machine> CreateMixed(Spec spec);
  void AddLinkClasses();
  void AddSection(std::shared_ptr<const Machine> machine);

  Spec spec_;
  int64_t num_devices_ = 0, gpus_per_domain_ = 0;
  std::vector<LinkClass> link_classes_;
  int intra_class_ = -1;
  std::vector<Section> sections_;  // of a mixed machine
};

// `kNvlink` for `nvlink3`, `kXgmi` for `xgmi`, `kPcie` for `pcie4`, else an
// error.
absl::StatusOr<LinkKind> IntraLinkKind(absl::string_view intra_link);

// `dgx-h100:16`, `dgx-h100:2x4`: a shipped preset on that many hosts (of that
// many GPUs); `dgx-a100-80g:2+dgx-h100:4`: two of them as one (CombineMachines).
// Errors list the presets and suggest.
absl::StatusOr<Machine> MachineFromPreset(absl::string_view text);
// Names of all shipped presets, sorted.
std::vector<std::string> MachinePresetNames();

}  // namespace plancast

#endif  // PLANCAST_CLUSTER_MACHINE_H_
