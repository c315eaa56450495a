#include "executor/memory/held_tensors.h"

namespace plancast {

std::vector<int32_t> TensorNames::NumbersOf(const Block& block) {
  std::vector<int32_t> numbers;
  numbers.reserve(block.tensors.size());
  for (const std::string& name : block.tensors) numbers.push_back(NumberOf(name));
  return numbers;
}

int32_t* HeldTensors::Find(int32_t* link, int64_t bytes) {
  while (*link != kNone && held_[*link].bytes != bytes) link = &held_[*link].older;
  return *link == kNone ? nullptr : link;
}

HeldTensors::Held HeldTensors::Unlink(int32_t* link) {
  const int32_t index = *link;
  const Held held = held_[index];
  *link = held.older;
  spare_.push_back(index);
  return held;
}

void HeldTensors::Add(int32_t* newest, int32_t block, int64_t bytes) {
  int32_t index;
  if (spare_.empty()) {
    index = static_cast<int32_t>(held_.size());
    held_.emplace_back();
  } else {
    index = spare_.back();
    spare_.pop_back();
  }
  held_[index] = {block, *newest, bytes};
  *newest = index;
}

bool HeldTensors::Take(int32_t* newest, int64_t bytes) {
  int32_t* const link = Find(newest, bytes);
  if (link == nullptr) return false;
  allocator_.Free(Unlink(link).block);
  return true;
}

bool HeldTensors::Allocate(int32_t name, int32_t micro_batch, int64_t bytes, int pool) {
  const int32_t block = allocator_.Allocate(bytes, pool);
  if (block == CachingAllocator::kNone) return false;
  Add(&Newest(name, micro_batch, pool), block, bytes);
  return true;
}

bool HeldTensors::Free(int32_t name, int32_t micro_batch, int64_t bytes, int pool) {
  int32_t* const newest = &Newest(name, micro_batch, pool);
  if (Take(newest, bytes) || Take(&Newest(TensorNames::kBetween, micro_batch), bytes)) return true;
  int32_t* larger = newest;
  while (*larger != kNone && held_[*larger].bytes < bytes) larger = &held_[*larger].older;
  if (*larger == kNone) {
    while (*newest != kNone && held_[*newest].bytes <= bytes) {
      bytes -= held_[*newest].bytes;
      allocator_.Free(Unlink(newest).block);
    }
    return true;
  }
  const Held whole = Unlink(larger);
  allocator_.Free(whole.block);
  return Allocate(name, micro_batch, whole.bytes - bytes, pool);
}

void HeldTensors::FreeAll() {
  for (int32_t& newest : newest_) {
    while (newest != kNone) allocator_.Free(Unlink(&newest).block);
  }
}

void HeldTensors::Rename(int32_t from, int32_t to, int32_t micro_batch, int64_t bytes) {
  int32_t* const link = Find(&Newest(from, micro_batch), bytes);
  if (link == nullptr) return;
  const Held moved = Unlink(link);
  Add(&Newest(to, micro_batch), moved.block, bytes);
}

}  // namespace plancast
