#include "executor/memory/allocator_replay.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "executor/memory/caching_allocator.h"

namespace plancast {
namespace {

// Blocks of the allocator by the names of their tensors. A tensor that a module hands to
// the next has no name in between.
class NamedBlocks {
 public:
  NamedBlocks(const ExecutionGraph& graph, const AllocatorParams& params, int64_t capacity)
      : allocator_(params, capacity), names_of_block_(graph.blocks.size()) {}

  const CachingAllocator& allocator() const { return allocator_; }

  bool Allocate(int32_t name, int32_t micro_batch, int64_t bytes) {
    const int32_t block = allocator_.Allocate(bytes);
    if (block == CachingAllocator::kNone) return false;
    held_[Key(name, micro_batch)].push_back({block, bytes});
    return true;
  }

  // Frees `bytes` of a tensor: the newest that has that size, else a part of one (what is
  // left is another block), else of what was handed over.
  bool Free(int32_t name, int32_t micro_batch, int64_t bytes) {
    if (Take(Key(name, micro_batch), bytes) || Take(Key(kBetween, micro_batch), bytes)) return true;
    std::vector<Held>& own = held_[Key(name, micro_batch)];
    const auto larger =
        std::find_if(own.rbegin(), own.rend(), [bytes](const Held& h) { return h.bytes > bytes; });
    if (larger == own.rend()) {  // several that go as one
      for (; !own.empty() && own.back().bytes <= bytes; own.pop_back()) {
        bytes -= own.back().bytes;
        allocator_.Free(own.back().block);
      }
      return true;
    }
    const Held whole = *larger;
    own.erase(std::next(larger).base());
    allocator_.Free(whole.block);
    return Allocate(name, micro_batch, whole.bytes - bytes);
  }

  // Hands a tensor of `bytes` from one name to another, where it is there.
  void Rename(int32_t from, int32_t to, int32_t micro_batch, int64_t bytes) {
    std::vector<Held>& source = held_[Key(from, micro_batch)];
    const auto found = Newest(source, bytes);
    if (found == source.rend()) return;
    const Held moved = *found;
    source.erase(std::next(found).base());
    held_[Key(to, micro_batch)].push_back(moved);
  }

  // Numbers of the names of a block's tensors.
  const std::vector<int32_t>& NamesOf(const Block& block, int32_t index) {
    std::vector<int32_t>& names = names_of_block_[index];
    if (names.empty()) {
      for (const std::string& name : block.tensors) {
        names.push_back(numbers_.try_emplace(name, numbers_.size() + 1).first->second);
      }
    }
    return names;
  }

  static constexpr int32_t kBetween = 0;

 private:
  struct Held {
    int32_t block = 0;
    int64_t bytes = 0;
  };

  static uint64_t Key(int32_t name, int32_t micro_batch) {
    return static_cast<uint64_t>(name) << 32 | static_cast<uint32_t>(micro_batch);
  }
  static std::vector<Held>::reverse_iterator Newest(std::vector<Held>& held, int64_t bytes) {
    return std::find_if(held.rbegin(), held.rend(),
                        [bytes](const Held& h) { return h.bytes == bytes; });
  }
  bool Take(uint64_t key, int64_t bytes) {
    const auto held = held_.find(key);
    if (held == held_.end()) return false;
    const auto found = Newest(held->second, bytes);
    if (found == held->second.rend()) return false;
    allocator_.Free(found->block);
    held->second.erase(std::next(found).base());
    return true;
  }

  CachingAllocator allocator_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
  std::vector<std::vector<int32_t>> names_of_block_;
  absl::flat_hash_map<uint64_t, std::vector<Held>> held_;
};

// Instances until the first micro-batches have gone back: as many as are in flight before
// the first does, and two more.
size_t Steady(const Program& program) {
  int32_t enough = -1;
  for (size_t i = 0; i < program.instances.size(); ++i) {
    const Instance& instance = program.instances[i];
    if (instance.phase == Phase::kBackward && enough < 0) {
      for (size_t before = 0; before < i; ++before) {
        enough = std::max(enough, program.instances[before].micro_batch);
      }
      enough += 3;
    }
    if (instance.phase == Phase::kBackward && instance.micro_batch >= enough) return i;
  }
  return program.instances.size();
}

}  // namespace

AllocatorReplay ReplayAllocator(const ExecutionGraph& graph, int32_t program,
                                const AllocatorParams& params, int64_t capacity) {
  const Program& replayed = graph.programs[program];
  NamedBlocks blocks(graph, params, capacity);
  AllocatorReplay result;
  const auto note = [&](bool fits, const PeakPlace& place) {
    const CachingAllocator& allocator = blocks.allocator();
    if (fits && allocator.most_reserved() == result.reserved) {
      result.live = std::max(result.live, allocator.live());
      return true;
    }
    result.live = std::max(result.live, allocator.live());
    result.reserved = fits ? allocator.most_reserved() : allocator.wanted();
    result.retries = allocator.retries();
    result.out_of_memory = !fits;
    result.place = place;
    return fits;
  };
  for (int64_t bytes : replayed.static_bytes) {
    if (bytes > 0 && !note(blocks.Allocate(NamedBlocks::kBetween, -1, bytes), {})) return result;
  }
  const size_t end = Steady(replayed);
  for (size_t i = 0; i < end; ++i) {
    const Instance& instance = replayed.instances[i];
    const Block& block = graph.blocks[instance.block];
    if (block.memory.empty() && block.takes.empty()) continue;
    const std::vector<int32_t>& names = blocks.NamesOf(block, instance.block);
    const int32_t mb = instance.micro_batch;
    for (int32_t copy = 0; copy < instance.layer_count; ++copy) {
      for (const PortMemory& port : block.takes) {
        blocks.Rename(NamedBlocks::kBetween, names[port.tensor], mb, port.bytes);
      }
      int32_t events = 0;
      for (const MemoryEvent& event : block.memory) {
        ++events;
        const int32_t name = names[event.tensor];
        const bool fits = event.delta > 0   ? blocks.Allocate(name, mb, event.delta)
                          : event.delta < 0 ? blocks.Free(name, mb, -event.delta)
                                            : true;
        if (!note(fits, {static_cast<int32_t>(i), copy, events})) return result;
      }
      for (const PortMemory& port : block.gives) {
        blocks.Rename(names[port.tensor], NamedBlocks::kBetween, mb, port.bytes);
      }
    }
  }
  result.retries = blocks.allocator().retries();
  return result;
}

}  // namespace plancast
