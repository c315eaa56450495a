#include "collectives/host_links.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

constexpr double kOneQ20 = 1 << 20;

// The class of links that leads from a device towards its host; -1: none.
int PortOf(const Machine& machine) {
  const int c2c = machine.FindLinkClass(LinkKind::kC2c);
  return c2c >= 0 ? c2c : machine.FindLinkClass(LinkKind::kPcie);
}

absl::Status NoLink(const Machine& machine, CollectiveKind kind) {
  const bool update = kind == CollectiveKind::kHostUpdate;
  return absl::InvalidArgumentError(absl::StrCat(
      "the plan has a ", kCollectiveKindNames[kind], ", and `", machine.spec().name,
      update ? "` does not say how fast its hosts' memory is. Give `host_memory_gb_per_s` in a "
               "machine file, or leave out `offload`."
             : "` has no link between its GPUs and their host's memory. Give `pcie_gb_per_s` in "
               "a machine file, or leave out `offload`."));
}

}  // namespace

absl::StatusOr<RealisedCollective> RealiseOnHost(const Machine& all, CollectiveKind kind,
                                                 int64_t bytes, bool nominal, int section) {
  const Machine& machine = all.section(section);
  const Machine::Spec& spec = machine.spec();
  const int memory = machine.FindLinkClass(LinkKind::kHostMemory);
  RealisedCollective realised;
  realised.work_bytes = bytes;
  realised.uses_no_sms = true;
  double rate = 9e18;
  const auto load = [&](int link_class, double share) {
    if (link_class < 0) return;
    const LinkClass& link = machine.link_classes()[link_class];
    rate = std::min(rate, link.bytes_per_s * share);
    realised.loads.push_back({all.FirstLinkClass(section) + link_class,
                              static_cast<int64_t>(std::ceil(kOneQ20 / share))});
  };
  if (kind == CollectiveKind::kHostUpdate) {
    if (memory < 0) return NoLink(machine, kind);
    realised.algorithm = "host";
    load(memory, nominal ? 1.0 : spec.host_update_share);
    realised.provenance.source = "memory bandwidth of the host";
  } else {
    const int port = PortOf(machine);
    if (port < 0) return NoLink(machine, kind);
    const double share = nominal ? 1.0 : spec.host_copy_share;
    int uplink = machine.FindLinkClass(LinkKind::kHostUplink);
    if (uplink < 0 && machine.FindLinkClass(LinkKind::kC2c) < 0) {
      uplink = machine.FindLinkClass(LinkKind::kPcieSwitch);
    }
    realised.algorithm = "copy";
    realised.delay_ps =
        static_cast<int64_t>(std::ceil(machine.link_classes()[port].latency_s * 1e12));
    load(port, share);
    load(uplink, share);
    load(memory, 1.0);
    realised.provenance.source = "copies between page-locked host memory and a device";
  }
  std::sort(realised.loads.begin(), realised.loads.end(),
            [](const LinkLoad& a, const LinkLoad& b) { return a.link_class < b.link_class; });
  realised.rate_cap_bytes_per_s = std::max<int64_t>(1, static_cast<int64_t>(rate));
  realised.factor = absl::StrCat("host/", realised.algorithm);
  return realised;
}

}  // namespace plancast
