// Machines of several sections, made from those of each.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "cluster/machine.h"

namespace plancast {
namespace {

// From all devices of a section to the other sections.
LinkClass Between(const Machine::Spec& spec, int64_t devices, int section) {
  LinkClass link;
  link.name = std::string(kLinkKindNames[LinkKind::kBetween]);
  link.kind = LinkKind::kBetween;
  link.reaches = Level::kCluster;
  link.bytes_per_s = spec.between_bytes_per_s;
  link.latency_s = spec.between_latency_s;
  link.devices_per_block = devices;
  link.section = section;
  return link;
}

}  // namespace

absl::StatusOr<Machine> Machine::CreateMixed(Spec spec) {
  Machine all(std::move(spec));
  Spec& whole = all.spec_;
  whole.hosts = 0;
  whole.gpus_per_host = whole.sections[0].gpus_per_host;
  for (const Spec& part : whole.sections) {
    ASSIGN_OR_RETURN(Machine made, Create(part));
    all.AddSection(std::make_shared<const Machine>(std::move(made)));
  }
  if (absl::Status status = all.Verify(); !status.ok()) return status;
  return all;
}

void Machine::AddSection(std::shared_ptr<const Machine> machine) {
  const int index = static_cast<int>(sections_.size());
  Section next;
  next.device = num_devices_;
  next.host = spec_.hosts;
  next.link_class = static_cast<int>(link_classes_.size());
  if (index > 0) {
    const Section& last = sections_.back();
    const int64_t end = last.machine->num_devices() - 1;
    next.domain = last.domain + last.machine->DomainOf(end) + 1;
    next.pod = last.pod + last.machine->PodOf(end) + 1;
  }
  for (LinkClass link : machine->link_classes()) {
    link.section = index;
    link_classes_.push_back(std::move(link));
  }
  const int64_t devices = machine->num_devices();
  if (spec_.between_bytes_per_s > 0) link_classes_.push_back(Between(spec_, devices, index));
  num_devices_ += devices;
  spec_.hosts += machine->spec().hosts;
  if (machine->spec().gpus_per_host != spec_.gpus_per_host) spec_.gpus_per_host = 0;
  const int64_t domain = machine->gpus_per_domain();
  gpus_per_domain_ = index == 0 ? domain : std::min(gpus_per_domain_, domain);
  next.machine = std::move(machine);
  sections_.push_back(std::move(next));
}

}  // namespace plancast
