#include "executor/what_if/what_if.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cluster/named_links.h"

namespace plancast {
namespace {

using Target = WhatIfChange::Target;

// `*` stands for any characters; the rest is literal.
bool Matches(absl::string_view pattern, absl::string_view text) {
  const size_t star = pattern.find('*');
  if (star == absl::string_view::npos) {
    return text == pattern || (absl::StartsWith(text, pattern) && text[pattern.size()] == '.');
  }
  if (!absl::StartsWith(text, pattern.substr(0, star))) return false;
  const absl::string_view rest = pattern.substr(star + 1);
  if (rest.empty()) return true;
  for (size_t from = star; from <= text.size(); ++from) {
    const absl::string_view tail = text.substr(from);
    if (rest.find('*') == absl::string_view::npos ? tail == rest : Matches(rest, tail)) return true;
  }
  return false;
}

template <typename Names>
absl::Status Unknown(absl::string_view what, const WhatIfChange& change, const Names& names) {
  return absl::NotFoundError(absl::StrCat("`", change.DebugString(), "`: no ", what, " `",
                                          change.name, "`.", Offer(change.name, names)));
}

// Multiplies the bandwidth of a link class of a machine of equal hosts; others stay as
// they are.
void SpeedUp(int link_class, double speed, const Machine& machine, Machine::Spec& spec) {
  const LinkClass& link = machine.link_classes()[link_class];
  // An uplink with more than all interfaces below it can send is never full.
  const auto oversubscribe = [&](double by) {
    spec.oversubscription = std::max(1.0, spec.oversubscription * by);
  };
  if (link.kind == LinkKind::kNic) {
    spec.nic_bytes_per_s *= speed;
    if (spec.hosts_per_pod > 0) oversubscribe(speed);
  } else if (link.kind == LinkKind::kSpine) {
    oversubscribe(1 / speed);
  } else if (link.kind == LinkKind::kHostBridge) {
    spec.host_bridge_bytes_per_s = link.bytes_per_s * speed;
  } else if (link.kind == LinkKind::kHostUplink) {
    spec.host_uplink_bytes_per_s = link.bytes_per_s * speed;
  } else if (link.kind == LinkKind::kHostMemory) {
    spec.host_memory_bytes_per_s *= speed;
  } else if (link.kind == LinkKind::kC2c) {
    spec.c2c_bytes_per_s *= speed;
  } else if (link_class == machine.intra_class()) {
    if (spec.host_bridge_bytes_per_s == 0) spec.host_bridge_bytes_per_s = spec.intra_bytes_per_s;
    spec.intra_bytes_per_s *= speed;
  } else {
    spec.pcie_bytes_per_s *= speed;
  }
}

// The same on any machine.
void SpeedUpInSection(int link_class, double speed, const Machine& machine, Machine::Spec& spec) {
  const LinkClass& link = machine.link_classes()[link_class];
  if (!machine.mixed()) {
    SpeedUp(link_class, speed, machine, spec);
  } else if (link.kind != LinkKind::kBetween) {
    SpeedUp(link_class - machine.FirstLinkClass(link.section), speed, machine.section(link.section),
            spec.sections[link.section]);
  } else if (link.section == 0) {  // one figure for all sections
    spec.between_bytes_per_s *= speed;
  }
}

absl::Status ChangeLink(const WhatIfChange& change, const Machine& machine, Machine::Spec& spec) {
  const std::vector<int> classes = LinkClassesNamed(machine, change.name);
  if (classes.empty()) {
    std::vector<std::string> names = LinkNames(machine);
    names.insert(names.end(),
                 {"compute", "communication", "launch", "sharing", "interference", "op:...",
                  "kernel:...", "purpose:...", "collective:...", "device:..."});
    return Unknown("link or other target", change, names);
  }
  if (change.instance < 0) {
    for (const int link_class : classes) {
      SpeedUpInSection(link_class, 1 / change.time, machine, spec);
    }
    return absl::OkStatus();
  }
  const int64_t count = NumLinksNamed(machine, change.name);
  if (change.instance >= count) {
    return absl::InvalidArgumentError(absl::StrCat("`", change.DebugString(), "`: the machine has ",
                                                   count, " `", change.name, "`, counted from 0."));
  }
  const LinkPlace at = FindLink(machine, change.name, change.instance);
  for (Machine::LinkOverride& known : spec.link_overrides) {
    if (known.link_class != at.link_class || known.instance != at.instance) continue;
    known.capacity_scale /= change.time;
    return absl::OkStatus();
  }
  spec.link_overrides.push_back({at.link_class, at.instance, 1 / change.time});
  return absl::OkStatus();
}

absl::Status ChangeDevice(const WhatIfChange& change, const Machine& machine, Machine::Spec& spec) {
  if (change.instance >= machine.num_devices()) {
    return absl::InvalidArgumentError(absl::StrCat("`", change.DebugString(), "`: the machine has ",
                                                   machine.num_devices(),
                                                   " devices, counted from 0."));
  }
  for (Machine::DeviceOverride& known : spec.device_overrides) {
    if (known.device != change.instance) continue;
    known.compute_scale /= change.time;
    return absl::OkStatus();
  }
  spec.device_overrides.push_back({change.instance, 1 / change.time});
  return absl::OkStatus();
}

std::string HeadOf(const std::string& label) { return label.substr(0, label.find('.')); }

// Gives every task a kernel or communication of its own time.
class TaskChanger {
 public:
  TaskChanger(const std::vector<WhatIfChange>& changes, ChangedPlan& plan)
      : changes_(changes), plan_(plan), met_(changes.size()) {}

  absl::Status Apply() && {
    const std::vector<KernelSpec> kernels = std::move(plan_.graph.kernels);
    const std::vector<CommSpec> comms = std::move(plan_.graph.comms);
    plan_.graph.kernels.clear();
    plan_.graph.comms.clear();
    for (Block& block : plan_.graph.blocks) {
      for (int32_t t = 0; t < block.size(); ++t) {
        if (block.kind[t] == TaskKind::kComm) {
          block.spec[t] = Add(block.spec[t], CommTime(block, t, comms[block.spec[t]]), comms,
                              comm_of_, plan_.graph.comms, plan_.options.comm_time);
        } else {
          const double time = KernelTime(block, t, kernels[block.spec[t]]);
          block.spec[t] = Add(block.spec[t], time, kernels, kernel_of_, plan_.graph.kernels,
                              plan_.options.kernel_time);
          KernelSpec& kernel = plan_.graph.kernels[block.spec[t]];
          if (time == 0) kernel.launches = kernel.calls = 0;
        }
      }
    }
    for (size_t i = 0; i < changes_.size(); ++i) {
      if (met_[i]) continue;
      RETURN_IF_ERROR(Unmet(changes_[i]));
    }
    return absl::OkStatus();
  }

 private:
  using Known = std::map<std::pair<int32_t, double>, int32_t>;

  template <typename Spec>
  static int32_t Add(int32_t spec, double time, const std::vector<Spec>& from, Known& known,
                     std::vector<Spec>& to, std::vector<double>& times) {
    const auto [found, fresh] = known.try_emplace({spec, time}, static_cast<int32_t>(to.size()));
    if (fresh) {
      to.push_back(from[spec]);
      times.push_back(time);
    }
    return found->second;
  }

  double KernelTime(const Block& block, int32_t t, const KernelSpec& kernel) {
    labels_.insert(HeadOf(block.label[t]));
    double time = 1;
    for (size_t i = 0; i < changes_.size(); ++i) {
      const WhatIfChange& change = changes_[i];
      const bool hit =
          change.target == Target::kCompute ||
          (change.target == Target::kOp &&
           (Matches(change.name, block.label[t]) || Matches(change.name, kernel.label))) ||
          (change.target == Target::kKernel && change.name == kKernelFamilyNames[kernel.family]) ||
          (change.target == Target::kPurpose && change.name == kPurposeNames[block.purpose[t]]);
      if (hit) time *= change.time;
      met_[i] = met_[i] || hit;
    }
    return time;
  }

  double CommTime(const Block& block, int32_t t, const CommSpec& comm) {
    double time = 1;
    for (size_t i = 0; i < changes_.size(); ++i) {
      const WhatIfChange& change = changes_[i];
      const bool hit =
          change.target == Target::kCommunication ||
          (change.target == Target::kCollective &&
           change.name == kCollectiveKindNames[comm.kind]) ||
          (change.target == Target::kPurpose && change.name == kPurposeNames[block.purpose[t]]);
      if (hit) time *= change.time;
      met_[i] = met_[i] || hit;
    }
    return time;
  }

  template <typename Names>
  static absl::Status CheckName(const WhatIfChange& change, absl::string_view what,
                                const Names& names) {
    return names.Find(change.name).has_value() ? absl::OkStatus() : Unknown(what, change, names);
  }

  // A name that no task has; one that some plan could have is fine.
  absl::Status Unmet(const WhatIfChange& change) const {
    switch (change.target) {
      case Target::kOp:
        return Unknown("op", change, labels_);
      case Target::kKernel:
        return CheckName(change, "kernel family", kKernelFamilyNames);
      case Target::kPurpose:
        return CheckName(change, "purpose", kPurposeNames);
      case Target::kCollective:
        return CheckName(change, "collective", kCollectiveKindNames);
      default:
        return absl::OkStatus();
    }
  }

  const std::vector<WhatIfChange>& changes_;
  ChangedPlan& plan_;
  std::vector<bool> met_;
  std::set<std::string> labels_;
  Known kernel_of_, comm_of_;
};

}  // namespace

absl::StatusOr<ChangedPlan> ChangePlan(const std::vector<WhatIfChange>& changes,
                                       const ExecutionGraph& graph, const Machine& machine,
                                       const RuntimeParams& runtime,
                                       const SimulateOptions& options) {
  ChangedPlan plan{graph, machine, runtime, options};
  Machine::Spec spec = machine.spec();
  for (const WhatIfChange& change : changes) {
    switch (change.target) {
      case Target::kLink:
        RETURN_IF_ERROR(ChangeLink(change, machine, spec));
        break;
      case Target::kDevice:
        RETURN_IF_ERROR(ChangeDevice(change, machine, spec));
        break;
      case Target::kLaunch:
        plan.runtime.launch_s *= change.time;
        plan.runtime.graph_launch_s *= change.time;
        plan.runtime.host_sync_s *= change.time;
        break;
      case Target::kSharing:
        plan.runtime.shares_links = false;
        break;
      case Target::kInterference:
        plan.runtime.interference = plan.runtime.comm_interference = 0;
        break;
      default:
        break;
    }
  }
  if (!plan.runtime.shares_links && !spec.link_overrides.empty()) {
    return absl::InvalidArgumentError(
        "`sharing=free`: communications with links of their own do not meet a single one that is "
        "faster or slower. Change the whole class, such as `nic=2x`.");
  }
  ASSIGN_OR_RETURN(plan.machine, Machine::Create(std::move(spec)));
  RETURN_IF_ERROR(TaskChanger(changes, plan).Apply());
  return plan;
}

std::vector<std::string> OpsByTime(const ExecutionGraph& graph,
                                   const std::vector<double>& seconds_of) {
  std::vector<int64_t> repeats(graph.blocks.size());
  for (const Program& program : graph.programs) {
    for (const Instance& instance : program.instances) {
      repeats[instance.block] += instance.layer_count;
    }
  }
  std::map<std::string, double> seconds;
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] == TaskKind::kComm) continue;
      seconds[HeadOf(block.label[t])] +=
          static_cast<double>(repeats[b]) * seconds_of[block.spec[t]];
    }
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [label, time] : seconds) order.emplace_back(-time, label);
  std::sort(order.begin(), order.end());
  std::vector<std::string> labels;
  for (auto& [time, label] : order) labels.push_back(std::move(label));
  return labels;
}

}  // namespace plancast
