#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_POSTAL_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_POSTAL_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace plancast::astra {

// Who is told when a message has gone or come.
struct Party {
  enum class Kind : uint8_t { kNobody, kChunk, kNode, kCustom };
  Kind kind = Kind::kNobody;
  int32_t a = 0;  // chunk, or rank of the node
  int32_t b = 0;  // node
};

// Messages of one tag and size between two ranks. They arrive in the order in
// which they were sent, and the k-th meets the k-th receive.
struct Box {
  int32_t from = 0, to = 0;
  int64_t bytes = 0;
  int64_t delay = 0;  // without congestion
  int32_t sent = 0, arrived = 0, posted = 0;
  int32_t first = -1, last = -1;  // receives that wait
  int32_t holders = 0;            // who keeps the index for more messages
  int64_t tag = 0;
  bool of_trace = false;

  // No message is in flight: the next one may open it again.
  bool over() const { return sent == arrived && arrived == posted && holders == 0; }
};

// All boxes, found by what they are for. Tags of collectives and of traces do not
// meet. An index is good until the box is over.
class Boxes {
 public:
  // Of a trace, tag, from, to, bytes.
  using Key = std::tuple<bool, int64_t, int32_t, int32_t, int64_t>;

  // Second: it is new.
  std::pair<int32_t, bool> Find(bool of_trace, int64_t tag, int32_t from, int32_t to,
                                int64_t bytes) {
    const auto [it, added] = by_key_.try_emplace(Key(of_trace, tag, from, to, bytes), 0);
    if (!added) return {it->second, false};
    if (free_.empty()) {
      free_.push_back(static_cast<int32_t>(boxes_.size()));
      boxes_.emplace_back();
    }
    it->second = free_.back();
    free_.pop_back();
    Box& box = boxes_[it->second];
    box = Box();
    box.from = from, box.to = to, box.bytes = bytes;
    box.of_trace = of_trace, box.tag = tag;
    return {it->second, true};
  }

  Box& at(int32_t index) { return boxes_[index]; }
  bool empty() const { return by_key_.empty(); }

  void ForgetIfOver(int32_t index) {
    const Box& box = boxes_[index];
    if (!box.over()) return;
    by_key_.erase(Key(box.of_trace, box.tag, box.from, box.to, box.bytes));
    free_.push_back(index);
  }

  void Await(Box& box, Party party) {
    int32_t entry;
    if (free_waits_ >= 0) {
      entry = free_waits_;
      free_waits_ = waits_[entry].next;
      waits_[entry] = {party, -1};
    } else {
      entry = static_cast<int32_t>(waits_.size());
      waits_.push_back({party, -1});
    }
    (box.last >= 0 ? waits_[box.last].next : box.first) = entry;
    box.last = entry;
  }

  Party TakeFirst(Box& box) {
    const int32_t entry = box.first;
    box.first = waits_[entry].next;
    if (box.first < 0) box.last = -1;
    waits_[entry].next = free_waits_;
    free_waits_ = entry;
    return waits_[entry].party;
  }

 private:
  struct Wait {
    Party party;
    int32_t next = -1;
  };
  std::vector<Box> boxes_;
  std::vector<int32_t> free_;
  std::vector<Wait> waits_;
  int32_t free_waits_ = -1;
  absl::flat_hash_map<Key, int32_t> by_key_;
};

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_POSTAL_H_
