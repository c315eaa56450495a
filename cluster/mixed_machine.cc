#include "cluster/mixed_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cluster/machine_proto.h"

namespace plancast {
namespace {

// What a host is: all but how many there are, what they are called and what differs.
std::string HostText(const Machine& hosts) {
  proto::Machine text = MachineToProto(hosts);
  text.clear_hosts();
  text.clear_name();
  text.clear_source();
  text.clear_device_overrides();
  text.clear_link_overrides();
  text.set_segment(static_cast<int32_t>(hosts.hosts_per_domain()));
  return text.SerializeAsString();
}

// Whether hosts that follow `hosts` of a machine continue its domains and pods.
bool EndsWhole(const Machine& machine, int64_t hosts) {
  return hosts % std::max(machine.hosts_per_domain(), machine.hosts_per_pod()) == 0;
}

// The sections of all parts; those that continue others as one, if wished.
std::vector<Machine::Spec> SectionsOf(const std::vector<Machine>& parts, bool join) {
  std::vector<Machine::Spec> sections;
  std::string last;
  for (const Machine& part : parts) {
    for (int s = 0; s < part.num_sections(); ++s) {
      const Machine& machine = part.section(s);
      Machine::Spec section = machine.spec();
      section.device_overrides.clear();
      section.link_overrides.clear();
      std::string text = HostText(machine);
      if (join && text == last && EndsWhole(machine, sections.back().hosts)) {
        sections.back().hosts += section.hosts;
        if (section.hosts_per_domain > 1) sections.back().segment = machine.hosts_per_domain();
        continue;
      }
      last = std::move(text);
      sections.push_back(std::move(section));
    }
  }
  return sections;
}

std::string JoinedName(const std::vector<Machine::Spec>& sections) {
  return absl::StrJoin(sections, "+", [](std::string* out, const Machine::Spec& section) {
    absl::StrAppend(out, section.name, ":", section.hosts);
  });
}

// Links between sections as some part has them, if none are stated.
absl::Status TakeBetween(const std::vector<Machine>& parts, Machine::Spec* all) {
  if (all->between_bytes_per_s > 0) return absl::OkStatus();
  for (const Machine& part : parts) {
    const Machine::Spec& own = part.spec();
    if (own.between_bytes_per_s == 0) continue;
    if (all->between_bytes_per_s > 0 && (own.between_bytes_per_s != all->between_bytes_per_s ||
                                         own.between_latency_s != all->between_latency_s)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the machines put together state different links between their sections. "
                       "List all sections in one machine file with one `between_gbit_per_s`."));
    }
    all->between_bytes_per_s = own.between_bytes_per_s;
    all->between_latency_s = own.between_latency_s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Machine> CombineMachines(const std::vector<Machine>& parts,
                                        const Machine::Spec& spec) {
  Machine::Spec all;
  all.name = spec.name;
  all.source = spec.source;
  all.between_bytes_per_s = spec.between_bytes_per_s;
  all.between_latency_s = spec.between_latency_s;
  RETURN_IF_ERROR(TakeBetween(parts, &all));
  // Links that are named keep their places, and stated links have sections at their ends.
  const bool join = all.between_bytes_per_s == 0 &&
                    std::all_of(parts.begin(), parts.end(), [](const Machine& part) {
                      return part.spec().link_overrides.empty();
                    });
  all.sections = SectionsOf(parts, join);
  int64_t devices = 0;
  for (const Machine& part : parts) {
    for (Machine::DeviceOverride slow : part.spec().device_overrides) {
      slow.device += devices;
      all.device_overrides.push_back(slow);
    }
    devices += part.num_devices();
  }
  if (all.sections.size() == 1) {
    Machine::Spec only = std::move(all.sections[0]);
    if (!all.name.empty()) only.name = all.name;
    if (!all.source.empty()) only.source = all.source;
    only.device_overrides = std::move(all.device_overrides);
    only.link_overrides = parts[0].spec().link_overrides;
    return Machine::Create(std::move(only));
  }
  if (all.name.empty()) all.name = JoinedName(all.sections);
  ASSIGN_OR_RETURN(Machine machine, Machine::Create(all));
  if (join) return machine;
  int first = 0;  // section of the part
  for (const Machine& part : parts) {
    for (Machine::LinkOverride slow : part.spec().link_overrides) {
      const int section = part.link_classes()[slow.link_class].section;
      slow.link_class += machine.FirstLinkClass(first + section) - part.FirstLinkClass(section);
      all.link_overrides.push_back(slow);
    }
    first += part.num_sections();
  }
  return Machine::Create(std::move(all));
}

std::string DeviceNames(const Machine& machine) {
  std::vector<std::string> names;
  for (int s = 0; s < machine.num_sections(); ++s) {
    const std::string& name = machine.section(s).device().name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return absl::StrJoin(names, "+");
}

absl::Status CheckNotMixed(const Machine& machine, absl::string_view what) {
  if (!machine.mixed()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(what, " is for machines of equal hosts, and `", machine.spec().name, "` has ",
                   machine.num_sections(), " sections (", DeviceNames(machine),
                   "). Take one of its sections as a machine."));
}

}  // namespace plancast
