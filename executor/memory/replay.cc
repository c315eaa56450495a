#include "executor/memory/replay.h"

#include <algorithm>
#include <cmath>

#include "executor/memory/allocator.h"
#include "executor/memory/allocator_replay.h"
#include "executor/memory/communicators.h"

namespace plancast {
namespace {

// Kinds of live memory at the peak: whole copies before it, then part of one.
KindBytes KindsAt(const Program& program, const PeakPlace& place,
                  const std::vector<BlockProfile>& profiles) {
  KindBytes kinds = StaticBytes(program);
  if (place.instance < 0) return kinds;
  std::vector<int64_t> copies(profiles.size());
  for (int32_t i = 0; i < place.instance; ++i) {
    copies[program.instances[i].block] += program.instances[i].layer_count;
  }
  const int32_t last = program.instances[place.instance].block;
  copies[last] += place.copy;
  for (size_t b = 0; b < profiles.size(); ++b) {
    if (copies[b] > 0) kinds.Add(profiles[b].net, copies[b]);
  }
  kinds.Add(profiles[last].at_high);
  return kinds;
}

// FindPeak; `profile_of`: of the block with a number.
template <typename ProfileOfBlock>
Peak FindPeakWith(const Program& program, const ProfileOfBlock& profile_of) {
  Peak peak;
  const std::vector<Instance>& instances = program.instances;
  int64_t live = 0, small = 0, large = 0, highest = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    const BlockProfile& block = profile_of(instances[i].block);
    const int64_t copies = instances[i].layer_count;
    if (live + block.live.Highest(copies) > highest) {
      highest = live + block.live.Highest(copies);
      peak.place.instance = static_cast<int32_t>(i);
    }
    peak.pools.small = std::max(peak.pools.small, small + block.small_pool.Highest(copies));
    peak.pools.large = std::max(peak.pools.large, large + block.large_pool.Highest(copies));
    live += block.live.net * copies;
    small += block.small_pool.net * copies;
    large += block.large_pool.net * copies;
    peak.largest = std::max(peak.largest, block.largest);
    // Tensors of several blocks may go as one, which is rounded otherwise.
    if (live == 0) small = large = 0;
  }
  peak.allocated = highest + StaticBytes(program).total();
  if (peak.place.instance >= 0) {
    const Instance& instance = instances[peak.place.instance];
    const BlockProfile& block = profile_of(instance.block);
    peak.place.copy = block.live.net > 0 ? instance.layer_count - 1 : 0;
    peak.place.events = block.high_events;
  }
  return peak;
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

double FragmentationOf(const AllocatorParams& params) {
  return params.expandable_segments ? 0 : params.fragmentation;
}

// Whether where blocks lie decides if there is room for them. A free block that nothing fits
// into is smaller than the largest that is asked for, and there are few of that size.
bool NearCapacity(const MemoryOverhead& overhead, const Peak& peak, int64_t segments,
                  int64_t room) {
  constexpr int64_t kLargeBlocks = 4;
  const auto flat = static_cast<int64_t>(
      std::ceil(static_cast<double>(segments) * FragmentationOf(overhead.allocator)));
  return overhead.capacity_bytes > 0 && overhead.allocator.block_bytes > 0 && flat > 0 &&
         segments <= room && segments + std::max(flat, kLargeBlocks * peak.largest) > room;
}

// All of ClassMemory but its bytes and nccl, with the flat share of fragmentation.
ClassMemory HeldFlat(const Program& program, const Peak& peak, const MemoryOverhead& overhead) {
  ClassMemory memory;
  memory.allocated = peak.allocated;
  PoolBytes pools = peak.pools;
  for (int64_t bytes : program.static_bytes) {
    const PoolBytes pooled = PooledBytes(overhead.allocator, bytes);
    pools.small += pooled.small;
    pools.large += pooled.large;
  }
  const int64_t segments = std::max(memory.allocated, SegmentBytes(overhead.allocator, pools));
  memory.rounding = segments - memory.allocated;
  memory.fragmentation = static_cast<int64_t>(
      std::ceil(static_cast<double>(segments) * FragmentationOf(overhead.allocator)));
  memory.context = overhead.context_bytes;
  return memory;
}

void AddUp(int64_t nccl, ClassMemory* memory) {
  memory->nccl = nccl;
  memory->reserved = memory->allocated + memory->rounding + memory->fragmentation;
  memory->device = memory->reserved + memory->nccl + memory->context;
}

int64_t RoomOf(const MemoryOverhead& overhead, int64_t nccl) {
  return overhead.capacity_bytes - nccl - overhead.context_bytes;
}

// What the framework takes to hold so much; all but ClassMemory::bytes.
ClassMemory Held(const ExecutionGraph& graph, int32_t program, const Peak& peak,
                 const std::vector<BlockProfile>& profiles, const MemoryOverhead& overhead) {
  ClassMemory memory = HeldFlat(graph.programs[program], peak, overhead);
  const int64_t segments = memory.allocated + memory.rounding;
  const int64_t nccl = BufferBytes(graph, program, profiles, overhead.communicators);
  const int64_t room = RoomOf(overhead, nccl);
  if (NearCapacity(overhead, peak, segments, room)) {
    const AllocatorReplay exact = ReplayAllocator(graph, program, overhead.allocator, room);
    memory.fragmentation = std::max<int64_t>(0, exact.reserved - segments);
  }
  AddUp(nccl, &memory);
  return memory;
}

// The profile of a block of the graph.
auto In(const std::vector<BlockProfile>& profiles) {
  return [&profiles](int32_t block) -> const BlockProfile& { return profiles[block]; };
}

}  // namespace

KindBytes StaticBytes(const Program& program) {
  KindBytes kinds;
  std::copy_n(program.static_bytes, kNumMemoryKinds, kinds.of);
  return kinds;
}

Peak FindPeak(const ExecutionGraph& graph, int32_t program,
              const std::vector<BlockProfile>& profiles) {
  return FindPeakWith(graph.programs[program], In(profiles));
}

int64_t DeviceBytes(const ExecutionGraph& graph, int32_t program,
                    const std::vector<BlockProfile>& profiles, const MemoryOverhead& overhead) {
  return Held(graph, program, FindPeak(graph, program, profiles), profiles, overhead).device;
}

std::optional<int64_t> DeviceBytesOf(const Program& program,
                                     const std::vector<const BlockProfile*>& profiles, int64_t nccl,
                                     const MemoryOverhead& overhead) {
  const Peak peak =
      FindPeakWith(program, [&](int32_t block) -> const BlockProfile& { return *profiles[block]; });
  ClassMemory memory = HeldFlat(program, peak, overhead);
  if (NearCapacity(overhead, peak, memory.allocated + memory.rounding, RoomOf(overhead, nccl))) {
    return std::nullopt;
  }
  AddUp(nccl, &memory);
  return memory.device;
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
