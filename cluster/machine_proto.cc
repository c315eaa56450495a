#include "cluster/machine_proto.h"

#include <google/protobuf/struct.pb.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cluster/catalogue.h"
#include "cluster/mixed_machine.h"
#include "cluster/named_links.h"
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
  const std::vector<std::string> names = LinkNames(machine);
  for (const proto::LinkOverride& o : proto.link_overrides()) {
    const int64_t count = NumLinksNamed(machine, o.link());
    if (count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("`link_overrides` names link `", o.link(), "`; the machine's links are ",
                       JoinQuoted(names), ".", DidYouMean(o.link(), names)));
    }
    if (o.instance() < 0 || o.instance() >= count) {
      return absl::InvalidArgumentError(absl::StrCat("a link override names `", o.link(), "` ",
                                                     o.instance(), "; the machine has ", count,
                                                     " of them, counted from 0."));
    }
    const LinkPlace at = FindLink(machine, o.link(), o.instance());
    spec.link_overrides.push_back(
        {at.link_class, at.instance, o.has_capacity_scale() ? o.capacity_scale() : 1.0});
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
  if (proto.has_host_launch_factor()) spec->host_launch_factor = proto.host_launch_factor();
  spec->host_memory_bytes = kGiB * proto.host_memory_gb();
  spec->host_memory_bytes_per_s =
      kGB * (proto.has_host_memory_gb_per_s() ? proto.host_memory_gb_per_s()
                                              : link.host_memory_gb_per_s());
}

// Of a mixed cluster: what is said of all of it.
absl::StatusOr<Machine> MixedFromProto(const proto::Machine& proto) {
  proto::Machine rest = proto;
  rest.clear_name();
  rest.clear_source();
  rest.clear_device_overrides();
  rest.clear_link_overrides();
  rest.clear_sections();
  rest.clear_between_gbit_per_s();
  rest.clear_between_latency_us();
  if (rest.ByteSizeLong() > 0) {
    return absl::InvalidArgumentError(
        "a machine with `sections` has no hosts of its own: beside them stand only `name`, "
        "`between_gbit_per_s`, `between_latency_us`, `device_overrides`, `link_overrides` and "
        "`source`. Move the other fields into the sections.");
  }
  std::vector<Machine> sections;
  for (int s = 0; s < proto.sections_size(); ++s) {
    ASSIGN_OR_RETURN(Machine section, MachineFromProto(proto.sections(s)), _ << "section " << s);
    sections.push_back(std::move(section));
  }
  Machine::Spec spec;
  spec.name = proto.name();
  spec.source = proto.source();
  spec.between_bytes_per_s = kGbit * proto.between_gbit_per_s();
  spec.between_latency_s = kMicro * proto.between_latency_us();
  ASSIGN_OR_RETURN(Machine machine, CombineMachines(sections, spec));
  if (proto.device_overrides().empty() && proto.link_overrides().empty()) return machine;
  spec = machine.spec();
  // Links are found on the machine as it is without what differs.
  const std::vector<Machine::DeviceOverride> devices = std::exchange(spec.device_overrides, {});
  const std::vector<Machine::LinkOverride> links = std::exchange(spec.link_overrides, {});
  RETURN_IF_ERROR(FillOverrides(proto, spec));
  spec.device_overrides.insert(spec.device_overrides.begin(), devices.begin(), devices.end());
  spec.link_overrides.insert(spec.link_overrides.begin(), links.begin(), links.end());
  return Machine::Create(std::move(spec));
}

}  // namespace

absl::StatusOr<Machine> MachineFromProto(const proto::Machine& given) {
  if (!given.sections().empty()) return MixedFromProto(given);
  if (given.has_between_gbit_per_s() || given.has_between_latency_us()) {
    return absl::InvalidArgumentError(
        "`between_gbit_per_s` and `between_latency_us` are of links between `sections`, and the "
        "machine has none. List them, or leave these out.");
  }
  ASSIGN_OR_RETURN(const proto::Machine proto, Complete(given));
  Machine::Spec spec;
  spec.name = proto.name();
  spec.device = DeviceFromProto(proto.gpu());
  if (proto.has_hosts()) spec.hosts = proto.hosts();
  if (proto.has_gpus_per_host()) spec.gpus_per_host = proto.gpus_per_host();
  if (proto.has_hosts_per_domain()) spec.hosts_per_domain = proto.hosts_per_domain();
  spec.segment = proto.segment();
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

namespace {

void OverridesToProto(const Machine& machine, proto::Machine* proto) {
  const Machine::Spec& spec = machine.spec();
  for (const Machine::DeviceOverride& o : spec.device_overrides) {
    proto::DeviceOverride* override = proto->add_device_overrides();
    override->set_device(o.device);
    override->set_compute_scale(o.compute_scale);
  }
  for (const Machine::LinkOverride& o : spec.link_overrides) {
    proto::LinkOverride* override = proto->add_link_overrides();
    override->set_link(machine.link_classes()[o.link_class].name);
    override->set_instance(LinkNumber(machine, o.link_class, o.instance));
    override->set_capacity_scale(o.capacity_scale);
  }
}

proto::Machine MixedToProto(const Machine& machine) {
  const Machine::Spec& spec = machine.spec();
  proto::Machine proto;
  proto.set_name(spec.name);
  for (int s = 0; s < machine.num_sections(); ++s) {
    *proto.add_sections() = MachineToProto(machine.section(s));
  }
  if (spec.between_bytes_per_s > 0) {
    proto.set_between_gbit_per_s(InUnits(spec.between_bytes_per_s, kGbit));
    proto.set_between_latency_us(InUnits(spec.between_latency_s, kMicro));
  }
  OverridesToProto(machine, &proto);
  proto.set_source(spec.source);
  return proto;
}

}  // namespace

proto::Machine MachineToProto(const Machine& machine) {
  if (machine.mixed()) return MixedToProto(machine);
  const Machine::Spec& spec = machine.spec();
  proto::Machine proto;
  proto.set_name(spec.name);
  *proto.mutable_gpu() = DeviceToProto(spec.device);
  proto.set_hosts(spec.hosts);
  proto.set_gpus_per_host(spec.gpus_per_host);
  proto.set_hosts_per_domain(spec.hosts_per_domain);
  if (spec.segment > 0) proto.set_segment(spec.segment);
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
  if (spec.host_launch_factor != 1) proto.set_host_launch_factor(spec.host_launch_factor);
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
  OverridesToProto(machine, &proto);
  proto.set_source(spec.source);
  return proto;
}

namespace {

// `gpu: NAME` is short for `gpu: {like: NAME}`, in sections too. False if there is none.
bool SpellOutGpus(google::protobuf::Struct* machine) {
  bool any = false;
  auto& fields = *machine->mutable_fields();
  if (const auto gpu = fields.find("gpu"); gpu != fields.end() && gpu->second.has_string_value()) {
    const std::string name = gpu->second.string_value();
    google::protobuf::Value like;
    like.set_string_value(name);
    (*gpu->second.mutable_struct_value()->mutable_fields())["like"] = like;
    any = true;
  }
  const auto sections = fields.find("sections");
  if (sections == fields.end() || !sections->second.has_list_value()) return any;
  for (google::protobuf::Value& section :
       *sections->second.mutable_list_value()->mutable_values()) {
    if (section.has_struct_value()) any = SpellOutGpus(section.mutable_struct_value()) || any;
  }
  return any;
}

}  // namespace

absl::StatusOr<Machine> MachineFromJson(absl::string_view json, absl::string_view what) {
  std::string text(json);
  // Where the text is no JSON object, the parser below tells.
  auto fields = ParseJson<google::protobuf::Struct>(json, what);
  if (fields.ok() && SpellOutGpus(&*fields)) {
    ASSIGN_OR_RETURN(text, ToJson(*fields), _ << what);
  }
  ASSIGN_OR_RETURN(const proto::Machine proto, ParseJson<proto::Machine>(text, what));
  ASSIGN_OR_RETURN(Machine machine, MachineFromProto(proto), _ << what);
  return machine;
}

std::string MachineToJson(const Machine& machine) {
  absl::StatusOr<std::string> json = ToJson(MachineToProto(machine), JsonStyle::kIndented);
  PLANCAST_CHECK_OK(json.status());  // sections hold no sections
  return *std::move(json);
}

}  // namespace plancast
