#include "executor/memory/allocator_replay.h"

#include <algorithm>
#include <set>
#include <vector>

#include "executor/memory/caching_allocator.h"

namespace plancast {
namespace {

// An instance as it is issued.
struct Issued {
  int32_t block = 0, layers = 1, micro_batch = 0;
  int32_t forward = -1;  // of a pair: the micro-batch that goes forward
  int32_t chunk = 0;
  bool backward = false, keeps = false;  // what a forward pass keeps is given up by a backward one

  int32_t MicroBatchOf(bool of_forward) const { return of_forward ? forward : micro_batch; }
  int32_t last() const { return std::max(micro_batch, forward); }
};

// An instance `later` micro-batches later.
Issued IssuedOf(const Instance& instance, int32_t later) {
  const bool backward = instance.phase == Phase::kBackward || instance.phase == Phase::kWeight;
  const int32_t forward = instance.pairs() ? instance.forward.micro_batch + later : -1;
  return {instance.block,
          instance.layer_count,
          instance.micro_batch + later,
          forward,
          instance.chunk,
          backward,
          instance.phase == Phase::kForward};
}

// Instances until the first micro-batches have gone back: as many as are in flight before
// the first does through all chunks that keep something, and two more. (Some chunks go back long
// before others: parts of a vocabulary, layers at the end of a V.)
class UntilSteady {
 public:
  // Whether `issued` is one of them, asked of each in turn.
  bool operator()(const Issued& issued) {
    if (enough_ >= 0) return !issued.backward || issued.micro_batch < enough_;
    in_flight_ = std::max({in_flight_, issued.forward, issued.backward ? -1 : issued.micro_batch});
    if (issued.keeps) ahead_.insert(issued.chunk);
    if (!issued.backward) return true;
    back_.insert(issued.chunk);
    if (back_.size() >= ahead_.size()) enough_ = in_flight_ + 3;
    return true;
  }

 private:
  int32_t in_flight_ = -1, enough_ = -1;
  std::set<int32_t> ahead_, back_;  // chunks that have gone forward, and back
};

class Replay {
 public:
  using GiveBack = CachingAllocator::GiveBack;

  Replay(const AllocatorParams& params, const SegmentRoom& room, GiveBack when, int32_t names,
         int32_t micro_batches)
      : pools_(params.stream_pools),
        allocator_(params, room.capacity, when, room.least),
        tensors_(&allocator_, names, micro_batches) {}

  // False where there was no room.
  bool Statics(const Program& program, bool with_optimizer = true) {
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
      if (!with_optimizer && kind == static_cast<int>(MemoryKind::kOptimizer)) continue;
      if (!Static(program, static_cast<MemoryKind>(kind))) return false;
    }
    return true;
  }
  bool Static(const Program& program, MemoryKind kind) {
    const int64_t bytes = program.static_bytes[static_cast<int>(kind)];
    return bytes <= 0 || Note(allocator_.Allocate(bytes) != CachingAllocator::kNone, {});
  }
  // What is left at the end of an iteration goes.
  void EndIteration() { tensors_.FreeAll(); }

  bool Run(const Issued& issued, int32_t index, const Block& block,
           const std::vector<int32_t>& names) {
    for (int32_t layer = 0; layer < issued.layers; ++layer) {
      for (const PortMemory& port : block.takes) {
        tensors_.Rename(TensorNames::kBetween, names[port.tensor],
                        issued.MicroBatchOf(port.forward), port.bytes);
      }
      int32_t events = 0;
      for (const MemoryEvent& event : block.memory) {
        ++events;
        const int32_t name = names[event.tensor];
        const int32_t mb = issued.MicroBatchOf(block.IsPairForward(event.task));
        const int pool = pools_ ? static_cast<int>(event.pool) : 0;
        const bool fits = event.delta > 0   ? tensors_.Allocate(name, mb, event.delta, pool)
                          : event.delta < 0 ? tensors_.Free(name, mb, -event.delta, pool)
                                            : true;
        if (!Note(fits, {index, layer, events})) return false;
      }
      for (const PortMemory& port : block.gives) {
        tensors_.Rename(names[port.tensor], TensorNames::kBetween,
                        issued.MicroBatchOf(port.forward), port.bytes);
      }
    }
    return true;
  }

  const AllocatorReplay& Result() {
    if (!result_.out_of_memory) result_.retries = allocator_.retries();
    return result_;
  }

 private:
  bool Note(bool fits, const PeakPlace& place) {
    result_.live = std::max(result_.live, allocator_.live());
    if (fits && allocator_.most_reserved() == result_.reserved) return true;
    result_.reserved = fits ? allocator_.most_reserved() : allocator_.wanted();
    result_.retries = allocator_.retries();
    result_.out_of_memory = !fits;
    result_.place = place;
    return fits;
  }

  const bool pools_;  // by stream
  CachingAllocator allocator_;
  HeldTensors tensors_;
  AllocatorReplay result_;
};

// `run`: of a Replay.
template <typename Run>
AllocatorReplay KeepOrGiveBack(const AllocatorParams& params, const SegmentRoom& room,
                               int32_t names, int32_t micro_batches, const Run& run) {
  using GiveBack = CachingAllocator::GiveBack;
  Replay kept(params, room, GiveBack::kNever, names, micro_batches);
  run(&kept);
  if (!kept.Result().out_of_memory) return kept.Result();
  Replay given(params, room, GiveBack::kBeforeGrowth, names, micro_batches);
  run(&given);
  return given.Result();
}

// The program of a graph with numbers for its tensors.
struct Numbered {
  const ExecutionGraph& graph;
  const Program& program;
  std::vector<std::vector<int32_t>> names;  // per block
  int32_t num_names = 0, micro_batches = 0;
  size_t steady = 0;  // instances until the allocator is in its steady state

  // `whole`: beyond that.
  Numbered(const ExecutionGraph& graph, int32_t program, bool whole)
      : graph(graph), program(graph.programs[program]), names(graph.blocks.size()) {
    UntilSteady goes_on;
    TensorNames numbers;
    bool begins = true;
    for (const Instance& instance : this->program.instances) {
      const Issued issued = IssuedOf(instance, /*later=*/0);
      begins = begins && goes_on(issued);
      if (!begins && !whole) break;
      if (begins) ++steady;
      micro_batches = std::max(micro_batches, issued.last() + 1);
      std::vector<int32_t>& own = names[instance.block];
      if (own.empty()) own = numbers.NumbersOf(graph.blocks[instance.block]);
    }
    num_names = numbers.size();
  }

  // The first `end` instances; false where one found no room.
  bool Run(size_t end, Replay* replay) const {
    for (size_t i = 0; i < end; ++i) {
      const Instance& instance = program.instances[i];
      const Block& block = graph.blocks[instance.block];
      if (block.memory.empty() && block.takes.empty()) continue;
      const Issued issued = IssuedOf(instance, /*later=*/0);
      if (!replay->Run(issued, static_cast<int32_t>(i), block, names[instance.block])) return false;
    }
    return true;
  }
};

}  // namespace

AllocatorReplay ReplayAllocator(const ExecutionGraph& graph, int32_t program,
                                const AllocatorParams& params, const SegmentRoom& room) {
  const Numbered numbered(graph, program, /*whole=*/false);
  return KeepOrGiveBack(params, room, numbered.num_names, numbered.micro_batches,
                        [&](Replay* replay) {
                          if (!replay->Statics(numbered.program)) return;
                          numbered.Run(numbered.steady, replay);
                        });
}

AllocatorReplay ReplayFirstSteps(const ExecutionGraph& graph, int32_t program,
                                 const AllocatorParams& params, const SegmentRoom& room) {
  const Numbered numbered(graph, program, /*whole=*/true);
  const Program& replayed = numbered.program;
  return KeepOrGiveBack(params, room, numbered.num_names, numbered.micro_batches,
                        [&](Replay* replay) {
                          if (!replay->Statics(replayed, /*with_optimizer=*/false)) return;
                          if (!numbered.Run(replayed.instances.size(), replay)) return;
                          if (!replay->Static(replayed, MemoryKind::kOptimizer)) return;
                          replay->EndIteration();
                          numbered.Run(numbered.steady, replay);
                        });
}

AllocatorReplay ReplayAllocator(const ProgramOutline& outline, absl::Span<const NamedBlock> blocks,
                                int32_t names, const AllocatorParams& params,
                                const SegmentRoom& room) {
  std::vector<Issued> order;
  int32_t micro_batches = 0;
  UntilSteady goes_on;
  ForEachIssued(outline, [&](const Instance& instance, int32_t later) {
    const Issued issued = IssuedOf(instance, later);
    if (!goes_on(issued)) return false;
    order.push_back(issued);
    micro_batches = std::max(micro_batches, issued.last() + 1);
    return true;
  });
  return KeepOrGiveBack(params, room, names, micro_batches, [&](Replay* replay) {
    if (!replay->Statics(outline.written)) return;
    for (size_t i = 0; i < order.size(); ++i) {
      const NamedBlock& named = blocks[order[i].block];
      if (named.block->memory.empty() && named.block->takes.empty()) continue;
      if (!replay->Run(order[i], static_cast<int32_t>(i), *named.block, *named.names)) return;
    }
  });
}

}  // namespace plancast
