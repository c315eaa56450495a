#ifndef PLANCAST_EXECUTOR_MEMORY_HELD_TENSORS_H_
#define PLANCAST_EXECUTOR_MEMORY_HELD_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "executor/memory/caching_allocator.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Numbers for names of tensors, in the order in which they are first asked for.
class TensorNames {
 public:
  // What a module hands to the next has no name in between.
  static constexpr int32_t kBetween = 0;

  int32_t NumberOf(const std::string& name) {
    return numbers_.try_emplace(name, size()).first->second;
  }
  // Of all tensors of a block.
  std::vector<int32_t> NumbersOf(const Block& block);
  int32_t size() const { return static_cast<int32_t>(numbers_.size()) + 1; }

 private:
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

// Blocks of an allocator by the name and micro-batch of the tensors in them.
class HeldTensors {
 public:
  HeldTensors(CachingAllocator* allocator, int32_t names, int32_t micro_batches)
      : allocator_(*allocator),
        names_(names),
        newest_(static_cast<size_t>(names) * micro_batches * kNumMemoryPools, kNone) {}

  // False where there is no room.
  bool Allocate(int32_t name, int32_t micro_batch, int64_t bytes, int pool = 0);
  // Frees `bytes` of a tensor: the newest that has that size, else of what was handed
  // over, else a part of a larger one (what is left is another block, for which there may
  // be no room), else several that go as one.
  bool Free(int32_t name, int32_t micro_batch, int64_t bytes, int pool = 0);
  void FreeAll();
  // Hands a tensor of `bytes` (of pool 0) from one name to another, where it is there.
  void Rename(int32_t from, int32_t to, int32_t micro_batch, int64_t bytes);

 private:
  static constexpr int32_t kNone = -1;
  struct Held {
    int32_t block = 0;
    int32_t older = kNone;  // of the same name and micro-batch
    int64_t bytes = 0;
  };

  int32_t& Newest(int32_t name, int32_t micro_batch, int pool = 0) {
    return newest_[(static_cast<size_t>(micro_batch) * names_ + name) * kNumMemoryPools + pool];
  }
  // The link to the newest tensor of such a size, at `link` or further on; nullptr.
  int32_t* Find(int32_t* link, int64_t bytes);
  bool Take(int32_t* newest, int64_t bytes);
  // Takes the tensor that `link` leads to out of its list, and gives it up.
  Held Unlink(int32_t* link);
  void Add(int32_t* newest, int32_t block, int64_t bytes);

  CachingAllocator& allocator_;
  const int32_t names_;
  std::vector<int32_t> newest_;  // per micro-batch, name and pool
  std::vector<Held> held_;
  std::vector<int32_t> spare_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_MEMORY_HELD_TENSORS_H_
