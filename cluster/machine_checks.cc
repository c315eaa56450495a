#include "cluster/machine_checks.h"

#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace plancast {
namespace {

// Bounds that no machine reaches; they keep device ids, byte counts and rates
// far inside 64 bits.
constexpr int64_t kMaxHosts = 1'000'000;
constexpr int64_t kMaxGpusPerHost = 1'024;
constexpr int64_t kMaxDevices = 16'777'216;
constexpr int64_t kMaxSections = 64;
constexpr double kMaxRate = 1e18;    // bytes/s; FLOP/s get a thousand times that
constexpr double kMaxSeconds = 1.0;  // of latency

constexpr absl::string_view kTopologies[] = {"nvswitch", "cube-mesh", "nvl72", "pcie-switch",
                                             "host-bridge"};
constexpr absl::string_view kFabrics[] = {"infiniband", "roce", "efa", "ethernet", "omnipath"};

absl::Status CheckCount(absl::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "`", field, "` is ", value, "; it has to be between ", least, " and ", most, "."));
}

// `unit` is the size of the unit that machine files use for the field.
absl::Status CheckFigure(absl::string_view field, double value, double unit, double most,
                         bool may_be_zero) {
  // What is less overflows where it is divided by.
  constexpr double kLeast = 1e-9;
  if (std::isfinite(value) && value <= most &&
      (value >= kLeast * unit || (may_be_zero && value == 0))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "`", field, "` is ", value / unit, "; it has to be ",
      may_be_zero ? "zero (none or unknown) or a positive number" : "a positive number",
      " of at most ", most / unit, value > 0 && value < kLeast * unit ? " and at least 1e-9" : "",
      "."));
}

absl::Status CheckName(absl::string_view field, absl::string_view value,
                       absl::Span<const absl::string_view> known) {
  for (absl::string_view name : known) {
    if (name == value) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("`", field, "` is `", value,
                                                 "`; it has to be one of ", JoinQuoted(known), ".",
                                                 DidYouMean(value, known)));
}

absl::Status CheckDevice(const DeviceType& d) {
  RETURN_IF_ERROR(CheckCount("gpu.sms", d.sms, 0, 1'000'000));
  RETURN_IF_ERROR(CheckFigure("gpu.memory_gb", d.memory_bytes, 1073741824.0, 1e16, false));
  RETURN_IF_ERROR(CheckFigure("gpu.usable_gb", d.usable_bytes, 0, d.memory_bytes, false));
  RETURN_IF_ERROR(CheckFigure("gpu.memory_gb_per_s", d.memory_bytes_per_s, 1e9, kMaxRate, false));
  RETURN_IF_ERROR(CheckFigure("gpu.l2_mb", d.l2_bytes, 1048576.0, 1e15, true));
  struct Rate {
    absl::string_view field;
    double flops;
  };
  double best = 0;
  for (const Rate& rate :
       {Rate{"gpu.fp32_tflops", d.fp32_flops}, Rate{"gpu.tf32_tflops", d.tf32_flops},
        Rate{"gpu.fp16_tflops", d.fp16_flops}, Rate{"gpu.bf16_tflops", d.bf16_flops},
        Rate{"gpu.fp8_tflops", d.fp8_flops}, Rate{"gpu.fp4_tflops", d.fp4_flops}}) {
    RETURN_IF_ERROR(CheckFigure(rate.field, rate.flops, 1e12, kMaxRate * 1e3, true));
    best = std::max(best, rate.flops);
  }
  if (best == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("GPU `", d.name,
                     "` has no peak rate. Give at least one of `fp32_tflops`, `fp16_tflops` and "
                     "`bf16_tflops`, or name a shipped GPU with `gpu: NAME`."));
  }
  RETURN_IF_ERROR(CheckFigure("gpu.boost_mhz", d.boost_mhz, 1, 1e6, true));
  RETURN_IF_ERROR(CheckFigure("gpu.tdp_watts", d.tdp_watts, 1, 1e6, true));
  return CheckFigure("gpu.usd_per_hour", d.usd_per_hour, 1, 1e6, true);
}

absl::Status CheckOverrides(const Machine::Spec& spec, int64_t count) {
  std::set<int64_t> devices;
  for (const Machine::DeviceOverride& o : spec.device_overrides) {
    if (o.device < 0 || o.device >= count) {
      return absl::InvalidArgumentError(absl::StrCat("a device override names device ", o.device,
                                                     "; the machine has ", count,
                                                     ", counted from 0."));
    }
    if (!devices.insert(o.device).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", o.device, " is overridden twice. Keep one override."));
    }
    RETURN_IF_ERROR(CheckFigure("device_overrides.compute_scale", o.compute_scale, 1, 1e3, false));
  }
  std::set<std::pair<int, int64_t>> links;
  for (const Machine::LinkOverride& o : spec.link_overrides) {
    if (!links.insert({o.link_class, o.instance}).second) {
      return absl::InvalidArgumentError(absl::StrCat("link ", o.instance, " of class ",
                                                     o.link_class,
                                                     " is overridden twice. Keep one override."));
    }
    RETURN_IF_ERROR(CheckFigure("link_overrides.capacity_scale", o.capacity_scale, 1, 1e3, false));
  }
  return absl::OkStatus();
}

// Whether kernels take equally long on both.
bool SameRates(const DeviceType& a, const DeviceType& b) {
  const auto rates = [](const DeviceType& d) {
    return std::make_tuple(d.sms, d.memory_bytes_per_s, d.l2_bytes, d.fp32_flops, d.tf32_flops,
                           d.fp16_flops, d.bf16_flops, d.fp8_flops, d.fp4_flops, d.boost_mhz);
  };
  return rates(a) == rates(b);
}

// What is known of kernels goes by the name of the device.
absl::Status CheckDeviceNames(const Machine::Spec& spec) {
  for (size_t a = 0; a < spec.sections.size(); ++a) {
    const DeviceType& one = spec.sections[a].device;
    for (size_t b = a + 1; b < spec.sections.size(); ++b) {
      const DeviceType& other = spec.sections[b].device;
      if (one.name != other.name || SameRates(one, other)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("sections ", a, " and ", b, " have unlike GPUs of one name, `", one.name,
                       "`. Give one another name: `gpu: {name: ..., like: ", one.name, ", ...}`."));
    }
  }
  return absl::OkStatus();
}

// Sections are one network: each reaches the others over interfaces of its own.
absl::Status CheckSections(const Machine::Spec& spec) {
  int64_t devices = 0;
  for (size_t s = 0; s < spec.sections.size(); ++s) {
    const Machine::Spec& section = spec.sections[s];
    const std::string where = absl::StrCat("section ", s, " (`", section.name, "`)");
    if (!section.sections.empty() || !section.device_overrides.empty() ||
        !section.link_overrides.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where,
                       " has sections or overrides of its own. List sections, and what "
                       "differs in them, for the whole machine."));
    }
    RETURN_IF_ERROR(CheckMachineSpec(section)) << where;
    if (section.nics_per_host < 1 || section.nic_bytes_per_s <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where,
                       " has no network interfaces and so no way to the other sections. "
                       "Give `nics_per_host` and `nic_gbit_per_s`."));
    }
    devices += section.hosts * section.gpus_per_host;
    RETURN_IF_ERROR(CheckCount("devices", devices, 1, kMaxDevices));
  }
  RETURN_IF_ERROR(
      CheckCount("sections", static_cast<int64_t>(spec.sections.size()), 2, kMaxSections));
  RETURN_IF_ERROR(CheckDeviceNames(spec));
  RETURN_IF_ERROR(
      CheckFigure("between_gbit_per_s", spec.between_bytes_per_s, 1.25e8, kMaxRate, true));
  RETURN_IF_ERROR(
      CheckFigure("between_latency_us", spec.between_latency_s, 1e-6, kMaxSeconds, true));
  if (spec.between_latency_s > 0 && spec.between_bytes_per_s == 0) {
    return absl::InvalidArgumentError(
        "`between_latency_us` is of links between sections, and there are none but the interfaces. "
        "Give `between_gbit_per_s` too, or `nic_latency_us` in the sections.");
  }
  return CheckOverrides(spec, devices);
}

}  // namespace

absl::Status CheckMachineSpec(const Machine::Spec& spec) {
  if (!spec.sections.empty()) return CheckSections(spec);
  RETURN_IF_ERROR(CheckCount("hosts", spec.hosts, 1, kMaxHosts));
  RETURN_IF_ERROR(CheckCount("gpus_per_host", spec.gpus_per_host, 1, kMaxGpusPerHost));
  RETURN_IF_ERROR(
      CheckCount("hosts * gpus_per_host", spec.hosts * spec.gpus_per_host, 1, kMaxDevices));
  RETURN_IF_ERROR(CheckCount("hosts_per_domain", spec.hosts_per_domain, 1, kMaxHosts));
  RETURN_IF_ERROR(CheckCount("segment", spec.segment, 0, kMaxHosts));
  if (spec.segment > spec.hosts_per_domain) {
    return absl::InvalidArgumentError(
        absl::StrCat("`segment` is ", spec.segment, " hosts, and an NVLink domain has ",
                     spec.hosts_per_domain, " (`hosts_per_domain`). Give at most as many."));
  }
  RETURN_IF_ERROR(CheckDevice(spec.device));
  RETURN_IF_ERROR(CheckName("topology", spec.topology, kTopologies));
  RETURN_IF_ERROR(IntraLinkKind(spec.intra_link).status());

  const bool several = spec.gpus_per_host > 1 || spec.hosts_per_domain > 1;
  RETURN_IF_ERROR(CheckFigure("intra_gb_per_s", spec.intra_bytes_per_s, 1e9, kMaxRate, !several));
  RETURN_IF_ERROR(CheckFigure("intra_latency_us", spec.intra_latency_s, 1e-6, kMaxSeconds, true));
  RETURN_IF_ERROR(CheckCount("gpus_per_switch", spec.gpus_per_switch, 1, kMaxGpusPerHost));
  RETURN_IF_ERROR(CheckFigure("switch_gb_per_s", spec.switch_bytes_per_s, 1e9, kMaxRate, true));
  RETURN_IF_ERROR(
      CheckFigure("host_bridge_gb_per_s", spec.host_bridge_bytes_per_s, 1e9, kMaxRate, true));
  RETURN_IF_ERROR(CheckFigure("pcie_gb_per_s", spec.pcie_bytes_per_s, 1e9, kMaxRate, true));
  RETURN_IF_ERROR(CheckFigure("c2c_gb_per_s", spec.c2c_bytes_per_s, 1e9, kMaxRate, true));
  RETURN_IF_ERROR(CheckFigure("host_copy_share", spec.host_copy_share, 1, 1, false));
  RETURN_IF_ERROR(CheckFigure("host_update_share", spec.host_update_share, 1, 1, false));
  RETURN_IF_ERROR(CheckFigure("host_launch_factor", spec.host_launch_factor, 1, 100, false));
  RETURN_IF_ERROR(
      CheckFigure("host_uplink_gb_per_s", spec.host_uplink_bytes_per_s, 1e9, kMaxRate, true));
  RETURN_IF_ERROR(
      CheckCount("gpus_per_host_uplink", spec.gpus_per_host_uplink, 0, kMaxGpusPerHost));
  RETURN_IF_ERROR(CheckFigure("host_memory_gb", spec.host_memory_bytes, 1073741824.0, 1e16, true));
  RETURN_IF_ERROR(
      CheckFigure("host_memory_gb_per_s", spec.host_memory_bytes_per_s, 1e9, kMaxRate, true));

  const bool networked = spec.hosts > spec.hosts_per_domain;
  RETURN_IF_ERROR(
      CheckCount("nics_per_host", spec.nics_per_host, networked ? 1 : 0, kMaxGpusPerHost));
  RETURN_IF_ERROR(
      CheckFigure("nic_gbit_per_s", spec.nic_bytes_per_s, 1.25e8, kMaxRate, !networked));
  RETURN_IF_ERROR(CheckFigure("nic_latency_us", spec.nic_latency_s, 1e-6, kMaxSeconds, true));
  RETURN_IF_ERROR(CheckCount("ring_nics", spec.ring_nics, 0, kMaxGpusPerHost));
  RETURN_IF_ERROR(CheckName("fabric", spec.fabric, kFabrics));
  RETURN_IF_ERROR(CheckCount("hosts_per_pod", spec.hosts_per_pod, 0, kMaxHosts));
  if (spec.hosts_per_pod % spec.hosts_per_domain != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("`hosts_per_pod` is ", spec.hosts_per_pod, " and `hosts_per_domain` is ",
                     spec.hosts_per_domain,
                     "; a pod holds whole domains, so the first has to be "
                     "a multiple of the second."));
  }
  RETURN_IF_ERROR(CheckFigure("oversubscription", spec.oversubscription, 1, 1e6, false));
  return CheckOverrides(spec, spec.hosts * spec.gpus_per_host);
}

}  // namespace plancast
