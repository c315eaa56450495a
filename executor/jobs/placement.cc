#include "executor/jobs/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "executor/fold/blocks.h"

namespace plancast {
namespace {

// `0-3,6` of `count` things.
absl::StatusOr<std::vector<int64_t>> ParseRanges(absl::string_view text, absl::string_view what,
                                                 int64_t count) {
  std::vector<int64_t> numbers;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int64_t first = 0, last = 0;
    const bool single = !absl::StrContains(part, '-');
    if (!absl::SimpleAtoi(ends.first, &first) ||
        !absl::SimpleAtoi(single ? ends.first : ends.second, &last) || first < 0 || last < first) {
      return absl::InvalidArgumentError(absl::StrCat("`", part, "` is no range of ", what,
                                                     ". Write ranges like `0-3` or `0-3,6`."));
    }
    if (last >= count) {
      return absl::InvalidArgumentError(absl::StrCat("`", what, " ", part,
                                                     "` leaves the machine, which has ", count, " ",
                                                     what, ", counted from 0."));
    }
    for (int64_t n = first; n <= last; ++n) numbers.push_back(n);
  }
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", what, " ", text, "` names ",
                     *std::adjacent_find(numbers.begin(), numbers.end()), " twice; name it once."));
  }
  return numbers;
}

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The links that messages between devices of a job may cross: (class, instance).
std::vector<std::pair<int, int64_t>> LinksOf(const PlacedJob& job, const Machine& machine) {
  std::vector<std::pair<int, int64_t>> links;
  if (job.devices.size() < 2) return links;
  const auto [low, high] = std::minmax_element(job.devices.begin(), job.devices.end());
  const bool hosts = machine.HostOf(*low) != machine.HostOf(*high);
  const bool pods = machine.PodOf(*low) != machine.PodOf(*high);
  for (int c = 0; c < static_cast<int>(machine.link_classes().size()); ++c) {
    const LinkClass& link = machine.link_classes()[c];
    // Inside a pod the spine joins rails.
    const bool spine = pods || (hosts && link.instances_per_block > 1);
    const bool inside =
        link.reaches == Level::kDevice && !(IsForHostMemory(link) && UsesHostMemory(*job.graph));
    if (inside || (link.kind == LinkKind::kNic && !hosts) ||
        (link.kind == LinkKind::kSpine && !spine)) {
      continue;
    }
    for (int64_t device : job.devices) links.emplace_back(c, machine.LinkInstance(c, device));
  }
  return links;
}

int RootOf(std::vector<int>& parent, int job) {
  while (parent[job] != job) job = parent[job] = parent[parent[job]];
  return job;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParsePlacement(absl::string_view text,
                                                    const Machine& machine) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  const int64_t per_host = machine.spec().gpus_per_host;
  std::optional<std::vector<int64_t>> hosts, gpus, devices;
  const auto parse = [&](absl::string_view what, absl::string_view ranges, int64_t count,
                         std::optional<std::vector<int64_t>>& to) -> absl::Status {
    if (to.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", text, "` says `", what, "` twice; say it once."));
    }
    ASSIGN_OR_RETURN(to, ParseRanges(ranges, what, count));
    return absl::OkStatus();
  };
  for (size_t i = 0; i < words.size(); i += 2) {
    const absl::string_view what = words[i];
    if (i + 1 == words.size() || (what != "hosts" && what != "gpus" && what != "devices")) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", text,
                       "` is no placement. Write `hosts 0-3`, `hosts 0-3 gpus 0-3`, "
                       "`gpus 0-3` or `devices 0-15`."));
    }
    const absl::string_view ranges = words[i + 1];
    if (what == "hosts") {
      RETURN_IF_ERROR(parse(what, ranges, machine.spec().hosts, hosts));
    } else if (what == "gpus") {
      RETURN_IF_ERROR(parse(what, ranges, per_host, gpus));
    } else {
      RETURN_IF_ERROR(parse(what, ranges, machine.num_devices(), devices));
    }
  }
  if (devices.has_value() ? hosts.has_value() || gpus.has_value()
                          : !hosts.has_value() && !gpus.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` is no placement: say `devices`, or `hosts` and `gpus`."));
  }
  if (devices.has_value()) return *std::move(devices);
  std::vector<int64_t> placed;
  for (int64_t host : hosts.value_or(UpTo(machine.spec().hosts))) {
    for (int64_t gpu : gpus.value_or(UpTo(per_host))) placed.push_back(host * per_host + gpu);
  }
  return placed;
}

absl::Status CheckPlacements(absl::Span<const PlacedJob> jobs, const Machine& machine) {
  std::map<int64_t, const PlacedJob*> taken;
  for (const PlacedJob& job : jobs) {
    const int64_t wanted = job.graph->mesh.num_devices();
    if (static_cast<int64_t>(job.devices.size()) != wanted) {
      return absl::InvalidArgumentError(absl::StrCat(
          "job `", job.name, "` is placed on ", job.devices.size(), " devices and its plan (",
          job.graph->mesh.DebugString(), ") runs on ", wanted, ". Give it exactly as many."));
    }
    if (job.arrival_ps < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "job `", job.name, "` arrives before time 0. Count from the first arrival."));
    }
    for (int64_t device : job.devices) {
      if (device < 0 || device >= machine.num_devices()) {
        return absl::InvalidArgumentError(absl::StrCat("job `", job.name, "` is placed on device ",
                                                       device, "; the machine has ",
                                                       machine.num_devices(), ", counted from 0."));
      }
      const auto [found, fresh] = taken.try_emplace(device, &job);
      if (!fresh && found->second == &job) {
        return absl::InvalidArgumentError(
            absl::StrCat("job `", job.name, "` lists device ", device, " twice; list each once."));
      }
      if (!fresh) {
        return absl::InvalidArgumentError(
            absl::StrCat("jobs `", found->second->name, "` and `", job.name,
                         "` are both placed on "
                         "device ",
                         device, ". Give each devices of its own; links they may share."));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<std::vector<int>> SetsThatShareLinks(absl::Span<const PlacedJob> jobs,
                                                 const Machine& machine) {
  std::vector<int> parent(jobs.size());
  std::iota(parent.begin(), parent.end(), 0);
  std::map<std::pair<int, int64_t>, int> user;
  for (int j = 0; j < static_cast<int>(jobs.size()); ++j) {
    for (const auto& link : LinksOf(jobs[j], machine)) {
      const int a = RootOf(parent, user.try_emplace(link, j).first->second);
      const int b = RootOf(parent, j);
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<std::vector<int>> sets;
  std::vector<int> set_of(jobs.size(), -1);
  for (int j = 0; j < static_cast<int>(jobs.size()); ++j) {
    int& set = set_of[RootOf(parent, j)];
    if (set < 0) {
      set = static_cast<int>(sets.size());
      sets.emplace_back();
    }
    sets[set].push_back(j);
  }
  return sets;
}

std::optional<Machine> Renumbered(const Machine& machine, absl::Span<const int64_t> devices) {
  // Inside one pod, pods do not matter.
  Machine::Spec podless = machine.spec();
  podless.hosts_per_pod = 0;
  podless.oversubscription = 1;
  podless.device_overrides.clear();
  podless.link_overrides.clear();
  const absl::StatusOr<Machine> one_pod = Machine::Create(std::move(podless));
  const auto [low, high] = std::minmax_element(devices.begin(), devices.end());
  const bool within = machine.PodOf(*low) == machine.PodOf(*high);
  const int64_t period = PeriodOf(within && one_pod.ok() ? *one_pod : machine);
  std::map<int64_t, int64_t> number_of;  // block of the machine -> new number
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto local = static_cast<int64_t>(i);
    if (devices[i] % period != local % period) return std::nullopt;
    const auto [found, fresh] = number_of.try_emplace(devices[i] / period, local / period);
    if (found->second != local / period) return std::nullopt;
  }
  Machine::Spec spec = machine.spec();
  spec.device_overrides.clear();
  spec.link_overrides.clear();
  for (Machine::DeviceOverride slow : machine.spec().device_overrides) {
    const auto block = number_of.find(slow.device / period);
    if (block == number_of.end()) continue;
    slow.device = block->second * period + slow.device % period;
    spec.device_overrides.push_back(slow);
  }
  for (Machine::LinkOverride slow : machine.spec().link_overrides) {
    const LinkClass& link = machine.link_classes()[slow.link_class];
    if (period % link.devices_per_block != 0) {
      // The rails of the one pod.
      if (slow.instance / link.instances_per_block != *low / link.devices_per_block) continue;
      slow.instance %= link.instances_per_block;
      spec.link_overrides.push_back(slow);
      continue;
    }
    const int64_t first = slow.instance / link.instances_per_block * link.devices_per_block;
    const auto block = number_of.find(first / period);
    if (block == number_of.end()) continue;
    const int64_t there = block->second * period + first % period;
    slow.instance = there / link.devices_per_block * link.instances_per_block +
                    slow.instance % link.instances_per_block;
    spec.link_overrides.push_back(slow);
  }
  absl::StatusOr<Machine> renumbered = Machine::Create(std::move(spec));
  if (!renumbered.ok()) return std::nullopt;
  return *std::move(renumbered);
}

}  // namespace plancast
