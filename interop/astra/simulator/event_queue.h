#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_EVENT_QUEUE_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_EVENT_QUEUE_H_

#include <cstdint>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace plancast::astra {

enum class EventKind : uint8_t { kRank, kArrival, kLinkFree, kReceipt, kReplay };

struct Event {
  EventKind kind = EventKind::kRank;
  int32_t a = 0, b = 0;
};

// Events by time, and at one time in the order in which they came, those that
// come while it passes included. Ranks in lockstep share few distinct times, so
// events lie in one list for each time.
class EventQueue {
 public:
  int64_t now() const { return now_; }

  void Push(int64_t time, Event event) { lists_[ListOf(time)].events.push_back(event); }

  // Whether all that came for now() is gone.
  bool TimeIsOver() const { return current_ < 0 || next_ == lists_[current_].events.size(); }

  // The next event, which is taken out; false if there is none.
  bool Pop(Event& event) {
    while (current_ < 0 || next_ == lists_[current_].events.size()) {
      if (current_ >= 0) Release();
      if (times_.empty()) return false;
      std::tie(now_, current_) = times_.top();
      times_.pop();
      next_ = 0;
    }
    event = lists_[current_].events[next_++];
    return true;
  }

 private:
  struct List {
    int64_t time = 0;
    std::vector<Event> events;
  };
  struct Recent {
    int64_t time = -1;
    int32_t list = -1;
  };
  static constexpr size_t kRecent = 256;

  int32_t ListOf(int64_t time) {
    Recent& recent = recent_[Slot(time)];
    if (recent.time == time) return recent.list;
    auto [it, added] = by_time_.try_emplace(time, 0);
    if (added) {
      if (free_.empty()) {
        free_.push_back(static_cast<int32_t>(lists_.size()));
        lists_.emplace_back();
      }
      it->second = free_.back();
      free_.pop_back();
      lists_[it->second].time = time;
      times_.emplace(time, it->second);
    }
    recent = {time, it->second};
    return it->second;
  }

  void Release() {
    List& list = lists_[current_];
    list.events.clear();
    by_time_.erase(list.time);
    if (Recent& recent = recent_[Slot(list.time)]; recent.time == list.time) recent.time = -1;
    free_.push_back(current_);
    current_ = -1;
  }

  static size_t Slot(int64_t time) { return static_cast<size_t>(time ^ (time >> 8)) % kRecent; }

  int64_t now_ = 0;
  int32_t current_ = -1;
  size_t next_ = 0;
  std::vector<List> lists_;
  std::vector<int32_t> free_;
  std::priority_queue<std::pair<int64_t, int32_t>, std::vector<std::pair<int64_t, int32_t>>,
                      std::greater<>>
      times_;
  absl::flat_hash_map<int64_t, int32_t> by_time_;
  Recent recent_[kRecent];
};

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_EVENT_QUEUE_H_
