#include "executor/memory/replay.h"

#include <algorithm>

#include "executor/memory/allocator_replay.h"
#include "executor/memory/communicators.h"
#include "executor/memory/footprint.h"
#include "graph/execution/program_devices.h"

namespace plancast {
namespace {

// Kinds of live memory at the peak: whole layers before it, then part of one.
KindBytes KindsAt(const Program& program, const PeakPlace& place,
                  const std::vector<BlockProfile>& profiles) {
  KindBytes kinds = StaticBytes(program);
  if (place.instance < 0) return kinds;
  std::vector<int64_t> layers(profiles.size());
  for (int32_t i = 0; i < place.instance; ++i) {
    layers[program.instances[i].block] += program.instances[i].layer_count;
  }
  const int32_t last = program.instances[place.instance].block;
  layers[last] += place.layer;
  for (size_t b = 0; b < profiles.size(); ++b) {
    if (layers[b] > 0) kinds.Add(profiles[b].net, layers[b]);
  }
  kinds.Add(profiles[last].at_high);
  return kinds;
}

int64_t BufferBytes(const ExecutionGraph& graph, int32_t program,
                    const std::vector<BlockProfile>& profiles, const CommunicatorParams& params) {
  std::vector<uint8_t> runs(profiles.size(), 0);
  for (const Instance& instance : graph.programs[program].instances) runs[instance.block] = 1;
  std::vector<int32_t> comms;
  for (size_t b = 0; b < profiles.size(); ++b) {
    if (runs[b] != 0) comms.insert(comms.end(), profiles[b].comms.begin(), profiles[b].comms.end());
  }
  int64_t bytes = 0;
  for (const Communicator& communicator : CommunicatorsOf(graph, comms, params)) {
    bytes += CommunicatorBytes(params, communicator);
  }
  return bytes;
}

// The most that a device keeps in the memory of its host.
int64_t HostBytes(const ExecutionGraph& graph, const Program& program) {
  int64_t live = program.host_bytes, highest = live;
  for (const Instance& instance : program.instances) {
    live += graph.blocks[instance.block].host_bytes * instance.layer_count;
    highest = std::max(highest, live);
  }
  return highest;
}

// What the framework takes to hold so much; all but ClassMemory::bytes.
ClassMemory Held(const ExecutionGraph& graph, int32_t program, const Peak& peak,
                 const std::vector<BlockProfile>& profiles, const MemoryOverhead& overhead) {
  const int64_t nccl = BufferBytes(graph, program, profiles, overhead.communicators);
  const Program& own = graph.programs[program];
  Footprint footprint = FootprintOf(own, peak, nccl, overhead, CapacityOf(overhead, graph, own));
  if (footprint.near_capacity) {
    footprint.Place(ReplayAllocator(graph, program, overhead.allocator, footprint.segment_room()));
  }
  return footprint.memory;
}

}  // namespace

KindBytes StaticBytes(const Program& program) {
  KindBytes kinds;
  std::copy_n(program.static_bytes, kNumMemoryKinds, kinds.of);
  return kinds;
}

Peak FindPeak(const ExecutionGraph& graph, int32_t index,
              const std::vector<BlockProfile>& profiles) {
  const Program& program = graph.programs[index];
  Peak peak;
  const std::vector<Instance>& instances = program.instances;
  int64_t live = 0, small = 0, large = 0, highest = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    const BlockProfile& block = profiles[instances[i].block];
    const int64_t layers = instances[i].layer_count;
    if (live + block.live.Highest(layers) > highest) {
      highest = live + block.live.Highest(layers);
      peak.place.instance = static_cast<int32_t>(i);
    }
    peak.pools.small = std::max(peak.pools.small, small + block.small_pool.Highest(layers));
    peak.pools.large = std::max(peak.pools.large, large + block.large_pool.Highest(layers));
    live += block.live.net * layers;
    small += block.small_pool.net * layers;
    large += block.large_pool.net * layers;
    peak.largest = std::max(peak.largest, block.largest);
    // Tensors of several blocks may go as one, which is rounded otherwise.
    if (live == 0) small = large = 0;
  }
  peak.allocated = highest + StaticBytes(program).total();
  if (peak.place.instance >= 0) {
    const Instance& instance = instances[peak.place.instance];
    const BlockProfile& block = profiles[instance.block];
    peak.place.layer = block.live.net > 0 ? instance.layer_count - 1 : 0;
    peak.place.events = block.high_events;
  }
  return peak;
}

int64_t DeviceBytes(const ExecutionGraph& graph, int32_t program,
                    const std::vector<BlockProfile>& profiles, const MemoryOverhead& overhead) {
  return Held(graph, program, FindPeak(graph, program, profiles), profiles, overhead).device;
}

ClassMemory ReplayProgram(const ExecutionGraph& graph, int32_t program,
                          const std::vector<BlockProfile>& profiles,
                          const MemoryOverhead& overhead) {
  const Peak peak = FindPeak(graph, program, profiles);
  ClassMemory memory = Held(graph, program, peak, profiles, overhead);
  const KindBytes kinds = KindsAt(graph.programs[program], peak.place, profiles);
  std::copy_n(kinds.of, kNumMemoryKinds, memory.bytes);
  memory.host = HostBytes(graph, graph.programs[program]);
  return memory;
}

std::vector<ClassMemory> ReplayMemory(const ExecutionGraph& graph, const RuntimeParams& runtime) {
  const std::vector<BlockProfile> profiles = ProfileBlocks(graph, runtime.memory.allocator);
  std::vector<ClassMemory> result;
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    result.push_back(ReplayProgram(graph, static_cast<int32_t>(p), profiles, runtime.memory));
  }
  return result;
}

}  // namespace plancast
