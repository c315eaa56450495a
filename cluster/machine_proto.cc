#include "cluster/machine_proto.h"

#include <google/protobuf/struct.pb.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cluster/catalogue.h"
#include "proto/json.h"

namespace plancast {
namespace {

constexpr double kGB = 1e9, kGiB = 1073741824.0, kMiB = 1048576.0, kTera = 1e12, kMicro = 1e-6,
                 kGbit = 1.25e8;

// A figure in file units without the last digits that the conversion to base
// units may have spoiled.
double InUnits(double value, double unit) {
  const double figure = value / unit;
  if (figure == 0 || !std::isfinite(figure)) return figure;
  const double scale = std::pow(10.0, 12 - std::ceil(std::log10(std::fabs(figure))));
  return std::round(figure * scale) / scale;
}

DeviceType DeviceFromProto(const proto::Gpu& gpu) {
  DeviceType device;
  device.name = gpu.name();
  device.sms = gpu.sms();
  device.memory_bytes = gpu.memory_gb() * kGiB;
  device.usable_bytes = gpu.usable_gb() * kGiB;
  device.memory_bytes_per_s = gpu.memory_gb_per_s() * kGB;
  device.l2_bytes = gpu.l2_mb() * kMiB;
  device.fp32_flops = gpu.fp32_tflops() * kTera;
  device.tf32_flops = gpu.tf32_tflops() * kTera;
  device.fp16_flops = gpu.fp16_tflops() * kTera;
  device.bf16_flops = gpu.bf16_tflops() * kTera;
  device.fp8_flops = gpu.fp8_tflops() * kTera;
  device.fp4_flops = gpu.fp4_tflops() * kTera;
  device.boost_mhz = gpu.boost_mhz();
  device.tdp_watts = gpu.tdp_watts();
  device.usd_per_hour = gpu.usd_per_hour();
  if (gpu.like() != gpu.name()) device.like = gpu.like();
  device.source = gpu.source();
  return device;
}

proto::Gpu DeviceToProto(const DeviceType& device) {
  proto::Gpu gpu;
  gpu.set_name(device.name);
  gpu.set_sms(device.sms);
  gpu.set_memory_gb(InUnits(device.memory_bytes, kGiB));
  if (device.usable_bytes > 0) gpu.set_usable_gb(InUnits(device.usable_bytes, kGiB));
  gpu.set_memory_gb_per_s(InUnits(device.memory_bytes_per_s, kGB));
  gpu.set_l2_mb(InUnits(device.l2_bytes, kMiB));
  gpu.set_fp32_tflops(InUnits(device.fp32_flops, kTera));
  gpu.set_tf32_tflops(InUnits(device.tf32_flops, kTera));
  gpu.set_fp16_tflops(InUnits(device.fp16_flops, kTera));
  gpu.set_bf16_tflops(InUnits(device.bf16_flops, kTera));
  gpu.set_fp8_tflops(InUnits(device.fp8_flops, kTera));
  gpu.set_fp4_tflops(InUnits(device.fp4_flops, kTera));
  gpu.set_boost_mhz(device.boost_mhz);
  gpu.set_tdp_watts(device.tdp_watts);
  gpu.set_usd_per_hour(device.usd_per_hour);
  if (!device.like.empty()) gpu.set_like(device.like);
  gpu.set_source(device.source);
  return gpu;
}

// `machine` with its preset and its GPU spelled out.
absl::StatusOr<proto::Machine> Complete(const proto::Machine& machine) {
  proto::Machine complete;
  if (machine.has_preset()) {
    ASSIGN_OR_RETURN(complete, FindMachinePreset(machine.preset()), _ << "`preset`");
    // Another GPU replaces the preset's; figures alone amend it.
    if (machine.gpu().has_like() || machine.gpu().has_name()) complete.clear_gpu();
  }
  complete.MergeFrom(machine);
  complete.clear_preset();
  if (!complete.has_gpu()) {
    return absl::InvalidArgumentError(
        "the machine has no `gpu`. Name a shipped one, such as `gpu: H100-SXM-80GB`, or give its "
        "figures.");
  }
  ASSIGN_OR_RETURN(*complete.mutable_gpu(), CompleteGpu(complete.gpu()), _ << "`gpu`");
  if (complete.gpu().name().empty()) {
    return absl::InvalidArgumentError(
        "`gpu` has no `name`. Name it, or say which shipped GPU it is `like`.");
  }
  return complete;
}

absl::Status FillOverrides(const proto::Machine& proto, Machine::Spec& spec) {
  for (const proto::DeviceOverride& o : proto.device_overrides()) {
    spec.device_overrides.push_back({o.device(), o.has_compute_scale() ? o.compute_scale() : 1.0});
  }
  if (proto.link_overrides().empty()) return absl::OkStatus();
  // The classes follow from the rest of the specification.
  Machine::Spec bare = spec;
  bare.device_overrides.clear();
  ASSIGN_OR_RETURN(const Machine machine, Machine::Create(std::move(bare)));
  std::vector<std::string> names;
  for (const LinkClass& link : machine.link_classes()) names.push_back(link.name);
  for (const proto::LinkOverride& o : proto.link_overrides()) {
    const auto it = std::find(names.begin(), names.end(), o.link());
    if (it == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`link_overrides` names link `", o.link(), "`; the machine's links are ",
                       JoinQuoted(names), ".", DidYouMean(o.link(), names)));
    }
    spec.link_overrides.push_back({static_cast<int>(it - names.begin()), o.instance(),
                                   o.has_capacity_scale() ? o.capacity_scale() : 1.0});
  }
  return absl::OkStatus();
}

// Between devices and their host's memory. `intra`: the link type inside the host, or
// nullptr.
void FillHostLinks(const proto::Machine& proto, const proto::LinkType* intra, Machine::Spec* spec) {
  static const proto::LinkType* const kUnknown = new proto::LinkType;
  const auto type_of = [](const std::string& name) {
    const proto::LinkType* type = FindIntraLinkType(name);
    return type == nullptr ? kUnknown : type;
  };
  const proto::LinkType& pcie = *type_of(proto.gpu().pcie());
  const proto::LinkType& own = *type_of(proto.gpu().host_link());
  spec->pcie_bytes_per_s =
      kGB * (proto.has_pcie_gb_per_s() ? proto.pcie_gb_per_s() : pcie.gb_per_s());
  spec->c2c_bytes_per_s = kGB * (proto.has_c2c_gb_per_s() ? proto.c2c_gb_per_s() : own.gb_per_s());
  const proto::LinkType& link = spec->c2c_bytes_per_s > 0 ? own : pcie;
  if (proto.has_host_copy_share()) {
    spec->host_copy_share = proto.host_copy_share();
  } else if (link.copy_gb_per_s() > 0) {
    spec->host_copy_share = link.copy_gb_per_s() / link.gb_per_s();
  }
  if (proto.has_gpus_per_host_uplink()) {
    spec->gpus_per_host_uplink = proto.gpus_per_host_uplink();
  } else if (intra != nullptr) {
    spec->gpus_per_host_uplink = intra->gpus_per_host_uplink();
  }
  spec->host_uplink_bytes_per_s = kGB * proto.host_uplink_gb_per_s();
  spec->host_update_share =
      proto.has_host_update_share() ? proto.host_update_share() : ShippedHostUpdateShare();
  spec->host_memory_bytes = kGiB * proto.host_memory_gb();
  spec->host_memory_bytes_per_s =
      kGB * (proto.has_host_memory_gb_per_s() ? proto.host_memory_gb_per_s()
                                              : link.host_memory_gb_per_s());
}

}  // namespace

absl::StatusOr<Machine> MachineFromProto(const proto::Machine& given) {
  ASSIGN_OR_RETURN(const proto::Machine proto, Complete(given));
  Machine::Spec spec;
  spec.name = proto.name();
  spec.device = DeviceFromProto(proto.gpu());
  if (proto.has_hosts()) spec.hosts = proto.hosts();
  if (proto.has_gpus_per_host()) spec.gpus_per_host = proto.gpus_per_host();
  if (proto.has_hosts_per_domain()) spec.hosts_per_domain = proto.hosts_per_domain();
  if (proto.has_topology()) spec.topology = proto.topology();
  if (proto.has_intra_link()) spec.intra_link = proto.intra_link();
  const proto::LinkType* intra = FindIntraLinkType(spec.intra_link);
  spec.intra_bytes_per_s = kGB * proto.intra_gb_per_s();
  if (!proto.has_intra_gb_per_s() && intra != nullptr) {
    spec.intra_bytes_per_s = kGB * intra->gb_per_s();
  }
  spec.intra_latency_s = kMicro * (proto.has_intra_latency_us() || !intra ? proto.intra_latency_us()
                                                                          : intra->latency_us());
  if (proto.has_gpus_per_switch()) spec.gpus_per_switch = proto.gpus_per_switch();
  spec.switch_bytes_per_s = kGB * proto.switch_gb_per_s();
  spec.host_bridge_bytes_per_s = kGB * proto.host_bridge_gb_per_s();
  FillHostLinks(proto, intra, &spec);
  if (proto.has_nics_per_host()) spec.nics_per_host = proto.nics_per_host();
  spec.nic_bytes_per_s = kGbit * proto.nic_gbit_per_s();
  spec.ring_nics = proto.ring_nics();
  if (proto.has_fabric()) spec.fabric = proto.fabric();
  const proto::LinkType* fabric = FindFabricType(spec.fabric);
  spec.nic_latency_s = kMicro * (proto.has_nic_latency_us() || !fabric ? proto.nic_latency_us()
                                                                       : fabric->latency_us());
  spec.hosts_per_pod = proto.hosts_per_pod();
  if (proto.has_oversubscription()) spec.oversubscription = proto.oversubscription();
  if (proto.has_rail_optimized()) spec.rail_optimized = proto.rail_optimized();
  spec.source = proto.source();
  RETURN_IF_ERROR(FillOverrides(proto, spec));
  return Machine::Create(std::move(spec));
}

proto::Machine MachineToProto(const Machine& machine) {
  const Machine::Spec& spec = machine.spec();
  proto::Machine proto;
  proto.set_name(spec.name);
  *proto.mutable_gpu() = DeviceToProto(spec.device);
  proto.set_hosts(spec.hosts);
  proto.set_gpus_per_host(spec.gpus_per_host);
  proto.set_hosts_per_domain(spec.hosts_per_domain);
  proto.set_topology(spec.topology);
  proto.set_intra_link(spec.intra_link);
  proto.set_intra_gb_per_s(InUnits(spec.intra_bytes_per_s, kGB));
  proto.set_intra_latency_us(InUnits(spec.intra_latency_s, kMicro));
  proto.set_gpus_per_switch(spec.gpus_per_switch);
  proto.set_switch_gb_per_s(InUnits(spec.switch_bytes_per_s, kGB));
  proto.set_host_bridge_gb_per_s(InUnits(spec.host_bridge_bytes_per_s, kGB));
  proto.set_pcie_gb_per_s(InUnits(spec.pcie_bytes_per_s, kGB));
  proto.set_c2c_gb_per_s(InUnits(spec.c2c_bytes_per_s, kGB));
  proto.set_host_copy_share(InUnits(spec.host_copy_share, 1));
  proto.set_host_uplink_gb_per_s(InUnits(spec.host_uplink_bytes_per_s, kGB));
  proto.set_gpus_per_host_uplink(static_cast<int32_t>(spec.gpus_per_host_uplink));
  proto.set_host_update_share(InUnits(spec.host_update_share, 1));
  proto.set_host_memory_gb(InUnits(spec.host_memory_bytes, kGiB));
  proto.set_host_memory_gb_per_s(InUnits(spec.host_memory_bytes_per_s, kGB));
  proto.set_nics_per_host(spec.nics_per_host);
  proto.set_nic_gbit_per_s(InUnits(spec.nic_bytes_per_s, kGbit));
  proto.set_nic_latency_us(InUnits(spec.nic_latency_s, kMicro));
  proto.set_ring_nics(spec.ring_nics);
  proto.set_fabric(spec.fabric);
  proto.set_hosts_per_pod(spec.hosts_per_pod);
  proto.set_oversubscription(spec.oversubscription);
  proto.set_rail_optimized(spec.rail_optimized);
  for (const Machine::DeviceOverride& o : spec.device_overrides) {
    proto::DeviceOverride* override = proto.add_device_overrides();
    override->set_device(o.device);
    override->set_compute_scale(o.compute_scale);
  }
  for (const Machine::LinkOverride& o : spec.link_overrides) {
    proto::LinkOverride* override = proto.add_link_overrides();
    override->set_link(machine.link_classes()[o.link_class].name);
    override->set_instance(o.instance);
    override->set_capacity_scale(o.capacity_scale);
  }
  proto.set_source(spec.source);
  return proto;
}

absl::StatusOr<Machine> MachineFromJson(absl::string_view json, absl::string_view what) {
  std::string text(json);
  // `gpu: NAME` is short for `gpu: {like: NAME}`. Where the text is no JSON
  // object, the parser below tells.
  auto fields = ParseJson<google::protobuf::Struct>(json, what);
  if (fields.ok()) {
    auto gpu = fields->mutable_fields()->find("gpu");
    if (gpu != fields->fields().end() && gpu->second.has_string_value()) {
      const std::string name = gpu->second.string_value();
      google::protobuf::Value like;
      like.set_string_value(name);
      (*gpu->second.mutable_struct_value()->mutable_fields())["like"] = like;
      ASSIGN_OR_RETURN(text, ToJson(*fields), _ << what);
    }
  }
  ASSIGN_OR_RETURN(const proto::Machine proto, ParseJson<proto::Machine>(text, what));
  ASSIGN_OR_RETURN(Machine machine, MachineFromProto(proto), _ << what);
  return machine;
}

std::string MachineToJson(const Machine& machine) {
  absl::StatusOr<std::string> json = ToJson(MachineToProto(machine), JsonStyle::kIndented);
  PLANCAST_CHECK_OK(json.status());  // a machine's message has no message of its own type
  return *std::move(json);
}

}  // namespace plancast
