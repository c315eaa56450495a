#ifndef PLANCAST_EXECUTOR_SHARING_INDEXED_HEAP_H_
#define PLANCAST_EXECUTOR_SHARING_INDEXED_HEAP_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"

namespace plancast {

// The least of many times that change: small numbers, each with a key. Allocates
// only for numbers larger than any before. Ties are in no order.
class IndexedHeap {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  bool empty() const { return heap_.empty(); }
  int size() const { return static_cast<int>(heap_.size()); }
  bool Contains(int32_t id) const {
    return id < static_cast<int32_t>(place_.size()) && place_[id] >= 0;
  }
  // kNever if there are none.
  int64_t least_key() const { return heap_.empty() ? kNever : heap_.front().key; }
  int32_t least() const { return heap_.front().id; }

  int64_t KeyOf(int32_t id) const {
    PLANCAST_DCHECK(Contains(id));
    return heap_[place_[id]].key;
  }
  // Adds to all keys but kNever.
  void Shift(int64_t by) {
    for (Entry& entry : heap_) entry.key += entry.key == kNever ? 0 : by;
  }

  // Adds `id` or changes its key.
  void Set(int32_t id, int64_t key) {
    const int32_t place = Put(id, key);
    if (place > 0 && key < heap_[Parent(place)].key) {
      Rise(place);
    } else {
      Sink(place);
    }
  }

  void Remove(int32_t id) {
    const int32_t place = place_[id];
    place_[id] = -1;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.id == id) return;
    heap_[place] = last;
    if (place > 0 && last.key < heap_[Parent(place)].key) {
      Rise(place);
    } else {
      Sink(place);
    }
  }

  // Like Set, but the heap is none until Order() is called: cheaper for many.
  int32_t Put(int32_t id, int64_t key) {
    if (id >= static_cast<int32_t>(place_.size())) place_.resize(id + 1, -1);
    if (place_[id] < 0) {
      place_[id] = size();
      heap_.push_back({key, id});
    } else {
      heap_[place_[id]].key = key;
    }
    return place_[id];
  }
  void Order() {
    if (heap_.empty()) return;
    for (int32_t place = (size() - 2) / kArity; place >= 0; --place) Sink(place);
  }

 private:
  static constexpr int32_t kArity = 4;  // as Sink compares them

  struct Entry {
    int64_t key;
    int32_t id;
  };

  static int32_t Parent(int32_t place) { return (place - 1) / kArity; }

  void Move(int32_t to, const Entry& entry) {
    heap_[to] = entry;
    place_[entry.id] = to;
  }

  void Rise(int32_t place) {
    const Entry entry = heap_[place];
    for (; place > 0 && entry.key < heap_[Parent(place)].key; place = Parent(place)) {
      Move(place, heap_[Parent(place)]);
    }
    Move(place, entry);
  }

  void Sink(int32_t place) {
    Entry* const heap = heap_.data();
    const Entry entry = heap[place];
    const int32_t count = size();
    while (true) {
      const int32_t first = place * kArity + 1;
      int32_t least = first;
      if (first + kArity <= count) {
        const Entry* const child = heap + first;
        const int32_t one = child[1].key < child[0].key ? 1 : 0;
        const int32_t other = child[3].key < child[2].key ? 3 : 2;
        least += child[other].key < child[one].key ? other : one;
      } else if (first < count) {
        for (int32_t child = first + 1; child < count; ++child) {
          if (heap[child].key < heap[least].key) least = child;
        }
      } else {
        break;
      }
      if (heap[least].key >= entry.key) break;
      Move(place, heap[least]);
      place = least;
    }
    Move(place, entry);
  }

  std::vector<Entry> heap_;
  std::vector<int32_t> place_;  // per id, or -1
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SHARING_INDEXED_HEAP_H_
