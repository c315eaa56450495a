#include "executor/fold/orbits.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "executor/fold/blocks.h"

namespace plancast {
namespace {

std::vector<int64_t> CutsOf(const DeviceMesh& mesh, const Machine& machine, bool host_memory) {
  std::vector<int64_t> cuts = BlocksOf(machine, host_memory);
  cuts.push_back(mesh.num_devices());
  for (int axis = 0; axis < mesh.num_axes(); ++axis) cuts.push_back(mesh.stride(axis));
  std::sort(cuts.begin(), cuts.end());
  // A block that holds the whole mesh cuts nothing.
  while (cuts.back() > mesh.num_devices()) cuts.pop_back();
  return cuts;
}

// Programs or loads.
bool WorkDiffersAlong(const ExecutionGraph& graph, int axis) {
  const std::vector<int>& loaded = graph.skew.axes;
  if (std::find(loaded.begin(), loaded.end(), axis) != loaded.end()) return true;
  for (const Program& program : graph.programs) {
    for (const auto& [fixed, coordinate] : program.where) {
      if (fixed == axis) return true;
    }
  }
  return false;
}

// What of the machine holds the devices [value * stride, (value + 1) * stride)
// beside those of other values: hosts, pods, shared links. Appends it to `places`.
void AddPlaces(const Machine& machine, int64_t stride, int64_t size, bool host_memory,
               std::vector<std::vector<int64_t>>* places) {
  std::vector<int64_t> values;  // in one section
  const auto add = [&](const auto& place_of) {
    std::vector<int64_t> place, distinct;
    for (const int64_t value : values) place.push_back(place_of(value * stride));
    distinct = place;
    std::sort(distinct.begin(), distinct.end());
    // Where each value has a place to itself, places change with the values.
    if (std::adjacent_find(distinct.begin(), distinct.end()) == distinct.end()) return;
    for (size_t i = 0; i < values.size(); ++i) (*places)[values[i]].push_back(place[i]);
  };
  for (int64_t begin = 0; begin < size; begin = values.back() + 1) {
    const int section = machine.SectionOf(begin * stride);
    values.clear();
    for (int64_t v = begin; v < size && machine.SectionOf(v * stride) == section; ++v) {
      values.push_back(v);
    }
    add([&](int64_t device) { return machine.HostOf(device); });
    add([&](int64_t device) { return machine.DomainOf(device); });
    add([&](int64_t device) { return machine.PodOf(device); });
    for (int link = 0; link < static_cast<int>(machine.link_classes().size()); ++link) {
      const LinkClass& links = machine.link_classes()[link];
      if (links.section != section || (!host_memory && IsForHostMemory(links))) continue;
      add([&](int64_t device) { return machine.LinkInstance(link, device); });
    }
  }
}

// In which sections the devices of every value of a digit lie: for each section, whether
// it begins below, in or above the value, in the block of the digit where it begins.
std::vector<std::vector<int64_t>> SectionsOf(const Machine& machine, int64_t devices,
                                             int64_t stride, int64_t size) {
  std::vector<std::vector<int64_t>> sections(size);
  for (int s = 1; s < machine.num_sections() && machine.FirstDevice(s) < devices; ++s) {
    const int64_t at = machine.FirstDevice(s) % (stride * size);
    for (int64_t value = 0; value < size; ++value) {
      sections[value].push_back(at <= value * stride ? 0 : at < (value + 1) * stride ? 1 : 2);
    }
  }
  return sections;
}

int64_t MostGpusPerHost(const Machine& machine) {
  int64_t most = 0;
  for (int s = 0; s < machine.num_sections(); ++s) {
    most = std::max(most, machine.section(s).spec().gpus_per_host);
  }
  return most;
}

// Whether sections begin inside blocks of so many devices.
bool SectionsCut(const Machine& machine, int64_t block) {
  for (int s = 1; s < machine.num_sections(); ++s) {
    if (machine.FirstDevice(s) % block != 0) return true;
  }
  return false;
}

}  // namespace

DeviceOrbits::DeviceOrbits(const ExecutionGraph& graph, const Machine& machine, bool discrete) {
  const int64_t devices = graph.mesh.num_devices();
  for (const Machine::DeviceOverride& slow : machine.spec().device_overrides) {
    if (slow.device < devices) special_.push_back(slow.device);
  }
  for (const Machine::LinkOverride& slow : machine.spec().link_overrides) {
    const LinkClass& link = machine.link_classes()[slow.link_class];
    const int64_t block = slow.instance / link.instances_per_block;
    const auto [first, end] = machine.BlockOf(
        slow.link_class, machine.FirstDevice(link.section) + block * link.devices_per_block);
    for (int64_t device = first; device < std::min(end, devices); ++device) {
      if (machine.LinkInstance(slow.link_class, device) == slow.instance) {
        special_.push_back(device);
      }
    }
  }
  const std::vector<int64_t> cuts = CutsOf(graph.mesh, machine, UsesHostMemory(graph));
  // Nothing is known of what lies alike across stages with meshes of their own.
  discrete = discrete || !graph.stage_meshes.empty();
  int64_t stride = 1;
  while (stride < devices) {
    int64_t next = 0;
    for (int64_t cut : cuts) next = cut > stride ? std::gcd(next, cut) : next;
    // What is left divides by nothing common: one digit for all of it.
    if (next == stride) next = devices;
    AddDigit(graph, machine, stride, next / stride, discrete);
    stride = next;
  }
  for (const Classes& digit : digits_) size_ *= static_cast<int32_t>(digit.lowest.size());
}

void DeviceOrbits::AddDigit(const ExecutionGraph& graph, const Machine& machine, int64_t stride,
                            int64_t size, bool discrete) {
  const DeviceMesh& mesh = graph.mesh;
  const bool host_memory = UsesHostMemory(graph);
  // Axes that the digit is part of.
  int axes = 0;
  bool work_differs = false;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const bool here = mesh.size(axis) > 1 && mesh.stride(axis) < stride * size &&
                      stride < mesh.stride(axis) * mesh.size(axis);
    if (!here) continue;
    ++axes;
    work_differs = work_differs || WorkDiffersAlong(graph, axis);
  }
  const bool apart =
      discrete || work_differs || axes > 1 ||
      (stride < MostGpusPerHost(machine) && !LinksServeWholeDevices(machine, host_memory)) ||
      (SectionsCut(machine, stride * size) && !SectionsAreAligned(machine, host_memory));
  // Only the outermost digit may hold several blocks of the machine; the values
  // of others lie alike.
  const bool outermost = stride * size == mesh.num_devices();
  std::vector<std::vector<int64_t>> places = SectionsOf(machine, mesh.num_devices(), stride, size);
  if (!apart && outermost) AddPlaces(machine, stride, size, host_memory, &places);

  Classes digit;
  digit.stride = stride;
  digit.size = size;
  std::vector<bool> special(size);
  for (int64_t device : special_) special[device / stride % size] = true;
  std::map<std::vector<int64_t>, int32_t> known;
  for (int64_t value = 0; value < size; ++value) {
    std::vector<int64_t> key = places[value];
    if (apart || special[value]) key.assign({-1, value});
    const auto [found, fresh] =
        known.try_emplace(std::move(key), static_cast<int32_t>(digit.lowest.size()));
    if (fresh) {
      digit.lowest.push_back(value);
      digit.count.push_back(0);
    }
    digit.of_value.push_back(found->second);
    ++digit.count[found->second];
  }
  digits_.push_back(std::move(digit));
}

int32_t DeviceOrbits::OrbitOf(int64_t device) const {
  int32_t orbit = 0, scale = 1;
  for (const Classes& digit : digits_) {
    orbit += scale * digit.of_value[device / digit.stride % digit.size];
    scale *= static_cast<int32_t>(digit.lowest.size());
  }
  return orbit;
}

int64_t DeviceOrbits::Representative(int32_t orbit) const {
  int64_t device = 0;
  for (const Classes& digit : digits_) {
    const auto classes = static_cast<int32_t>(digit.lowest.size());
    device += digit.lowest[orbit % classes] * digit.stride;
    orbit /= classes;
  }
  return device;
}

int64_t DeviceOrbits::Count(int32_t orbit) const {
  int64_t count = 1;
  for (const Classes& digit : digits_) {
    const auto classes = static_cast<int32_t>(digit.lowest.size());
    count *= digit.count[orbit % classes];
    orbit /= classes;
  }
  return count;
}

}  // namespace plancast
