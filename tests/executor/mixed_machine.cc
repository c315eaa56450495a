#include "tests/executor/mixed_machine.h"

#include <algorithm>
#include <random>
#include <string>

#include "base/check.h"
#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {}

  Machine::Spec Draw(int64_t devices) {
    Machine::Spec whole;
    whole.name = "mixed";
    int64_t drawn = 0;
    const int64_t sections = In(2, 3);
    for (int64_t s = 0; s < sections; ++s) {
      // The plan reaches into the last one.
      const int64_t left = devices - drawn;
      whole.sections.push_back(DrawSection(s + 1 < sections ? left / (sections - s) : left));
      whole.sections.back().device.name = "unit " + std::to_string(s);
      drawn += whole.sections.back().hosts * whole.sections.back().gpus_per_host;
    }
    while (drawn < devices) {
      ++whole.sections.back().hosts;
      drawn += whole.sections.back().gpus_per_host;
    }
    if (Once(3)) {
      whole.between_bytes_per_s = static_cast<double>(In(1, 5)) * 1e9;
      whole.between_latency_s = Once(2) ? 0 : 3e-6;
    }
    if (Once(3)) whole.device_overrides.push_back({In(0, devices - 1), 0.5});
    if (Once(3)) DrawSlowLink(whole);
    return whole;
  }

 private:
  int64_t In(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Once(int in) { return In(1, in) == 1; }

  Machine::Spec DrawSection(int64_t about) {
    constexpr int64_t kPerHost[] = {1, 2, 2, 3, 4, 4, 6, 8};
    const int64_t per_host = kPerHost[In(0, 7)];
    Machine::Spec spec = UnitMachine(std::max<int64_t>(1, about / per_host), per_host);
    spec.device.boost_mhz = 500 << In(0, 3);  // so that products are exact
    spec.nics_per_host = In(1, per_host);
    spec.nic_bytes_per_s = static_cast<double>(In(1, 4)) * 1e9;
    spec.intra_bytes_per_s = static_cast<double>(In(1, 4)) * 3e10;
    spec.pcie_bytes_per_s = static_cast<double>(In(1, 4)) * 1e9;
    spec.gpus_per_host_uplink = In(0, 3);
    spec.host_memory_bytes_per_s = static_cast<double>(In(1, 8)) * 4e9;
    spec.host_copy_share = Once(2) ? 1 : 0.77;
    if (Once(3)) {
      spec.hosts_per_pod = In(1, 2);
      spec.oversubscription = static_cast<double>(In(1, 3));
      spec.rail_optimized = Once(2);
    } else if (Once(4)) {
      spec.oversubscription = static_cast<double>(In(2, 4));
    }
    if (Once(5)) {
      spec.topology = "host-bridge";
      spec.intra_link = "pcie4";
      spec.gpus_per_switch = In(1, 3);
    }
    return spec;
  }

  void DrawSlowLink(Machine::Spec& whole) {
    const absl::StatusOr<Machine> machine = Machine::Create(whole);
    PLANCAST_CHECK_OK(machine);
    Machine::LinkOverride slow;
    slow.link_class =
        static_cast<int>(In(0, static_cast<int64_t>(machine->link_classes().size()) - 1));
    slow.instance = In(0, machine->NumLinkInstances(slow.link_class) - 1);
    slow.capacity_scale = 0.5;
    whole.link_overrides.push_back(slow);
  }

  std::mt19937 random_;
};

}  // namespace

Machine::Spec DrawMixedMachine(uint32_t seed, int64_t devices) {
  return Drawing(seed).Draw(devices);
}

}  // namespace plancast
