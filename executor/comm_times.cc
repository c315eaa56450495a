#include "executor/comm_times.h"

#include <algorithm>

#include "base/int128.h"

namespace plancast {
namespace {

constexpr int64_t kOne = int64_t{1} << 20;

}  // namespace

void CommTimes::Close(int32_t lane, int64_t end) {
  for (Interval& interval : intervals_) {
    if (interval.lane == lane && interval.end == kOpen) interval.end = end;
  }
}

void CommTimes::Forget(int64_t time) {
  size_t kept = 0;
  for (const Interval& interval : intervals_) {
    if (interval.end > time) intervals_[kept++] = interval;
  }
  intervals_.resize(kept);
}

int64_t CommTimes::EndOf(int64_t start, int64_t duration, int64_t slowdown_q20) const {
  if (intervals_.empty()) return start + duration;
  bool slow = false;
  for (const Interval& i : intervals_) slow = slow || (i.begin <= start && start < i.end);
  int64_t since = start, left = duration, at = start;
  while (true) {
    const int64_t end = since + (slow ? MulDivCeil(left, slowdown_q20, kOne) : left);
    int64_t next = end;
    for (const Interval& i : intervals_) {
      if (i.begin > at) next = std::min(next, i.begin);
      if (i.end > at) next = std::min(next, i.end);
    }
    if (next >= end) return end;
    at = next;
    // What ends goes before what begins: if nothing lasts on, there is a change.
    bool lasts = false, begins = false;
    for (const Interval& i : intervals_) {
      lasts = lasts || (i.begin < at && i.end > at);
      begins = begins || i.begin == at;
    }
    if (slow ? lasts : !begins) continue;
    const int64_t past = at - since;
    left = std::max<int64_t>(left - (slow ? MulDivFloor(past, kOne, slowdown_q20) : past), 0);
    since = at;
    slow = lasts || begins;
  }
}

}  // namespace plancast
