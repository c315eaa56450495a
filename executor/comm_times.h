#ifndef PLANCAST_EXECUTOR_COMM_TIMES_H_
#define PLANCAST_EXECUTOR_COMM_TIMES_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace plancast {

// When an entity communicates, as far as that is known, and how long its kernels
// take beside it.
class CommTimes {
 public:
  static constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();

  // The communication in a lane takes place in [begin, end); kOpen: until Close.
  void Add(int64_t begin, int64_t end, int32_t lane) { intervals_.push_back({begin, end, lane}); }
  void Close(int32_t lane, int64_t end);
  // Drops what is over by then.
  void Forget(int64_t time);
  bool empty() const { return intervals_.empty(); }

  struct Interval {
    int64_t begin = 0, end = 0;
    int32_t lane = 0;
  };
  const std::vector<Interval>& known() const { return intervals_; }
  void Clear() { intervals_.clear(); }

  // The end of a kernel that takes `duration` alone. While any communication is
  // under way it takes `slowdown_q20` times as long; what is left of it is
  // rounded to whole picoseconds whenever that changes.
  int64_t EndOf(int64_t start, int64_t duration, int64_t slowdown_q20) const;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_COMM_TIMES_H_
