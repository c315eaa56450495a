#ifndef PLANCAST_TESTS_CLUSTER_TOPOLOGY_BOXES_H_
#define PLANCAST_TESTS_CLUSTER_TOPOLOGY_BOXES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/topology/system_element.h"

// Hosts that are simple enough to know the answers by hand.

namespace plancast {

inline SystemElement& AddPciTo(SystemElement& parent, const std::string& bus,
                               const std::string& pci_class) {
  SystemElement& pci = parent.Add("pci");
  pci.Set("busid", bus);
  pci.Set("class", pci_class);
  pci.Set("link_speed", "16.0 GT/s PCIe");
  pci.Set("link_width", "16");
  return pci;
}

struct BoxOptions {
  int sm = 80;
  int nvlinks = 0;  // of each GPU, to a switch
  bool net = true;  // one of 100 Gbit/s below the first PCIe switch
  bool gdr = true;
  std::string vendor = "GenuineIntel";
};

// Four GPUs, two below each of two PCIe switches of one socket: 24 GB/s each.
inline SystemElement FourGpuBox(const BoxOptions& options = {}) {
  SystemElement system;
  system.name = "system";
  system.Set("version", "1");
  SystemElement& cpu = system.Add("cpu");
  cpu.Set("numaid", "0");
  cpu.Set("arch", "x86_64");
  cpu.Set("vendor", options.vendor);
  cpu.Set("familyid", "6");
  cpu.Set("modelid", "106");
  for (int s = 0; s < 2; ++s) {
    SystemElement& pci = AddPciTo(cpu, absl::StrCat("0000:1", s, ":00.0"), "0x060400");
    for (int g = 2 * s; g < 2 * s + 2; ++g) {
      SystemElement& gpu = AddPciTo(pci, absl::StrCat("0000:4", g, ":00.0"), "0x030200").Add("gpu");
      gpu.Set("dev", absl::StrCat(g));
      gpu.Set("sm", absl::StrCat(options.sm));
      gpu.Set("rank", absl::StrCat(g));
      gpu.Set("gdr", options.gdr ? "1" : "0");
      if (options.nvlinks == 0) continue;
      SystemElement& nvlink = gpu.Add("nvlink");
      nvlink.Set("target", "fffffff:ff:ff.0");
      nvlink.Set("count", absl::StrCat(options.nvlinks));
      nvlink.Set("tclass", "0x068000");
    }
    if (s > 0 || !options.net) continue;
    SystemElement& net = AddPciTo(pci, "0000:80:00.0", "0x020700").Add("nic").Add("net");
    net.Set("name", "mlx5_0");
    net.Set("dev", "0");
    net.Set("speed", "100000");
    net.Set("port", "1");
    net.Set("guid", "0x1000");
    net.Set("gdr", options.gdr ? "1" : "0");
  }
  return system;
}

// As RCCL writes it: every GPU has one link to each of the others.
inline SystemElement XgmiBox(const std::string& gcn = "gfx942") {
  SystemElement system = FourGpuBox();
  int index = 0;
  ForEachElement(system, [&](SystemElement& element) {
    const std::string* pci_class = element.Find("class");
    if (pci_class != nullptr && *pci_class == "0x030200") element.Set("class", "0x120000");
    if (element.name != "gpu") return;
    element.Set("sm", "304");
    element.Set("gcn", gcn);
    for (int peer = 0; peer < 4; ++peer) {
      if (peer == index) continue;
      SystemElement& xgmi = element.Add("xgmi");
      xgmi.Set("target", absl::StrCat("0000:4", peer, ":00.0"));
      xgmi.Set("count", "1");
      xgmi.Set("tclass", "0x120000");
    }
    ++index;
  });
  return system;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_CLUSTER_TOPOLOGY_BOXES_H_
