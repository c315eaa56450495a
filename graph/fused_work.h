#ifndef PLANCAST_GRAPH_FUSED_WORK_H_
#define PLANCAST_GRAPH_FUSED_WORK_H_

#include <cstdint>
#include <utility>

namespace plancast {

// What ops do inside of the kernel of a collective, with what it brings or takes: they have its
// blocks and threads, and go on as it hands them the tensor.
struct FusedWork {
  int64_t bytes = 0;    // of the tensor, those that a rank computes on
  int64_t traffic = 0;  // of memory, what it reads and writes for these besides
  // The ranks share out a sum. Where the algorithm has the sum on one rank only, that rank computes
  // on all of it.
  bool of_sum = false;

  bool empty() const { return bytes == 0; }
  friend bool operator==(const FusedWork& a, const FusedWork& b) {
    return a.bytes == b.bytes && a.traffic == b.traffic && a.of_sum == b.of_sum;
  }
  template <typename H>
  friend H AbslHashValue(H h, const FusedWork& w) {
    return H::combine(std::move(h), w.bytes, w.traffic, w.of_sum);
  }
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_FUSED_WORK_H_
